// A training step of llm.c's CPU trainer at a given shape, with random weights and tokens: tokens/s of the median step.
//   gcc -Ofast -march=native -fopenmp -I LLMC llmc_step.c -o llmc_step -lm && ./llmc_step LAYERS WIDTH HEADS SEQ BATCH STEPS
// LLMC is a checkout of github.com/karpathy/llm.c.
#define TESTING
#include "train_gpt2.c"
#include <sys/resource.h>
#include <time.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}

static int by_value(const void* a, const void* b) { return *(double*)a < *(double*)b ? -1 : 1; }

// write_checkpoint makes the file that the trainer reads its sizes and weights from.
static void write_checkpoint(const char* path, GPT2Config c) {
  int header[256] = {20240326, 3, c.max_seq_len, c.vocab_size, c.num_layers, c.num_heads, c.channels, c.padded_vocab_size};
  size_t sizes[NUM_PARAMETER_TENSORS];
  FILE* f = fopenCheck(path, "wb");
  fwrite(header, sizeof header, 1, f);
  fill_in_parameter_sizes(sizes, c);
  for (int i = 0; i < NUM_PARAMETER_TENSORS; i++) {
    int norm = i == 2 || i == 8 || i == 14;
    for (size_t j = 0; j < sizes[i]; j++) {
      float x = norm ? 1 : 0.04f * ((float)rand() / RAND_MAX - 0.5f);
      fwrite(&x, sizeof x, 1, f);
    }
  }
  fcloseCheck(f);
}

int main(int argc, char** argv) {
  if (argc != 7) return fprintf(stderr, "llmc_step LAYERS WIDTH HEADS SEQ BATCH STEPS\n"), 2;
  int layers = atoi(argv[1]), width = atoi(argv[2]), heads = atoi(argv[3]), T = atoi(argv[4]), B = atoi(argv[5]), steps = atoi(argv[6]);
  GPT2Config config = {1024, 50257, 50304, layers, heads, width};
  char path[] = "/tmp/llmcXXXXXX";
  close(mkstemp(path));
  write_checkpoint(path, config);
  GPT2 model;
  gpt2_build_from_checkpoint(&model, path);
  remove(path);
  int *inputs = mallocCheck(B * T * sizeof(int)), *targets = mallocCheck(B * T * sizeof(int));
  double* took = mallocCheck(steps * sizeof(double));
  for (int i = 0; i < steps; i++) {
    for (int j = 0; j < B * T; j++) inputs[j] = rand() % 50257, targets[j] = rand() % 50257;
    double start = now();
    gpt2_forward(&model, inputs, targets, B, T);
    gpt2_zero_grad(&model);
    gpt2_backward(&model);
    gpt2_update(&model, 3e-4f, 0.9f, 0.95f, 1e-8f, 0.1f, i + 1);
    took[i] = now() - start;
  }
  int warm = steps > 3 ? 2 : 1; // the first step makes the memory
  qsort(took + warm, steps - warm, sizeof *took, by_value);
  struct rusage r;
  getrusage(RUSAGE_SELF, &r);
  double ms = 1e3 * took[warm + (steps - warm) / 2];
  printf("{\"step_ms\": %.1f, \"tokens_per_s\": %.1f, \"resident_peak\": %ld, \"loss\": %.3f}\n", ms, 1e3 * B * T / ms, r.ru_maxrss * 1024, model.mean_loss);
  return 0;
}
