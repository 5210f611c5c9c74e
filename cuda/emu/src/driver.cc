// A library with the driver's functions whose devices are this processor: what a kernel module needs to run, memory that knows
// its bounds, and nothing asynchronous. One device for each scheduling order.
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <mutex>
#include <string>

#include "blocks.h"

#define API extern "C" __attribute__((visibility("default"))) int

enum { success = 0, invalid_value = 1, out_of_memory = 2, not_initialized = 3, no_device = 100, invalid_device = 101, invalid_image = 200, invalid_context = 201, not_found = 500, illegal_address = 700, launch_failed = 719 };

static const uint64_t device_memory = 4ull << 30;

struct device {
  int order;
  uint64_t used;
  int retained;             // by how many
  std::atomic<int> broken;  // a fault poisons the context until the last has given it back
};

struct kernel {
  std::string name;
  const emu_entry* entry;
  int dynamic;  // bytes of dynamic shared memory it may have
};

struct module {
  void* lib;
  std::map<std::string, kernel> kernels;
};

static std::mutex mu;
static bool initialized;
static device devices[orders] = {{ascending, 0, 0, {0}}, {descending, 0, 0, {0}}, {shuffled, 0, 0, {0}}, {last_first, 0, 0, {0}}};
static std::map<uint64_t, std::pair<uint64_t, device*>> blocks;  // size and owner by address
static thread_local device* current;
static thread_local std::string fault;

// TRIAX_EMU_DEVICES=0 plays a driver without a device.
API cuInit(unsigned) {
  const char* n = getenv("TRIAX_EMU_DEVICES");
  if (n && strcmp(n, "0") == 0) return no_device;
  initialized = true;
  return success;
}

API cuDriverGetVersion(int* v) {
  *v = 12090;
  return success;
}

API cuDeviceGetCount(int* n) {
  *n = orders;
  return initialized ? success : not_initialized;
}

API cuDeviceGet(int* d, int ordinal) {
  *d = ordinal;
  return ordinal >= 0 && ordinal < orders ? success : invalid_device;
}

API cuDeviceGetName(char* name, int n, int d) {
  snprintf(name, n, "emulated, %s", order_names[d]);
  return success;
}

API cuDeviceTotalMem_v2(size_t* n, int) {
  *n = device_memory;
  return success;
}

API cuDeviceGetAttribute(int* v, int what, int) {
  switch (what) {
    case 16: *v = 2; break;       // multiprocessors
    case 75: *v = 9; break;       // compute capability
    case 76: *v = 0; break;
    case 97: *v = 227 << 10; break;  // shared memory a block may ask for
    case 33: case 34: case 50: *v = 0; break;  // PCI bus, device, domain
    default: return invalid_value;
  }
  return success;
}

API cuDevicePrimaryCtxRetain(void** ctx, int d) {
  std::lock_guard<std::mutex> hold(mu);
  *ctx = &devices[d];
  devices[d].retained++;
  return success;
}

API cuDevicePrimaryCtxRelease_v2(int d) {
  std::lock_guard<std::mutex> hold(mu);
  if (devices[d].retained == 0) return invalid_context;
  if (--devices[d].retained == 0) devices[d].broken = 0;
  return success;
}

API cuCtxSetCurrent(void* ctx) {
  current = (device*)ctx;
  return success;
}

API cuCtxSynchronize() { return current ? current->broken.load() : invalid_context; }
API cuStreamCreate(void** s, unsigned) {
  *s = malloc(1);
  return success;
}
API cuStreamSynchronize(void*) { return current ? current->broken.load() : invalid_context; }
API cuStreamDestroy_v2(void* s) {
  free(s);
  return success;
}

// Work is done when it is given: an event has always happened.
API cuEventCreate(void** e, unsigned) {
  *e = malloc(1);
  return success;
}
API cuEventRecord(void*, void*) { return current ? current->broken.load() : invalid_context; }
API cuEventSynchronize(void*) { return current ? current->broken.load() : invalid_context; }
API cuEventQuery(void*) { return current ? current->broken.load() : invalid_context; }
API cuStreamWaitEvent(void*, void*, unsigned) { return current ? current->broken.load() : invalid_context; }
API cuEventDestroy_v2(void* e) {
  free(e);
  return success;
}

API cuMemGetInfo_v2(size_t* left, size_t* all) {
  std::lock_guard<std::mutex> hold(mu);
  *all = device_memory;
  *left = device_memory - current->used;
  return success;
}

API cuMemAlloc_v2(uint64_t* p, size_t n) {
  if (!current) return invalid_context;
  std::lock_guard<std::mutex> hold(mu);
  if (n == 0) return invalid_value;
  if (current->used + n > device_memory) return out_of_memory;
  void* m = aligned_alloc(256, (n + 255) / 256 * 256);
  if (!m) return out_of_memory;
  if (n <= 64 << 20) memset(m, 0xff, n);  // what a device holds is anybody's guess
  *p = (uint64_t)m;
  blocks[*p] = {n, current};
  current->used += n;
  return success;
}

API cuMemFree_v2(uint64_t p) {
  std::lock_guard<std::mutex> hold(mu);
  auto it = blocks.find(p);
  if (it == blocks.end()) return invalid_value;
  it->second.second->used -= it->second.first;
  blocks.erase(it);
  free((void*)p);
  return success;
}

API cuMemHostAlloc(void** p, size_t n, unsigned) {
  *p = malloc(n);
  return *p ? success : out_of_memory;
}

API cuMemFreeHost(void* p) {
  free(p);
  return success;
}

// inside says whether a range lies in one block of the current device.
static bool inside(uint64_t p, size_t n) {
  std::lock_guard<std::mutex> hold(mu);
  auto it = blocks.upper_bound(p);
  if (it == blocks.begin()) return false;
  --it;
  return it->second.second == current && p + n <= it->first + it->second.first;
}

static int checked(uint64_t p, size_t n) {
  if (!current) return invalid_context;
  if (int r = current->broken) return r;
  return inside(p, n) ? success : invalid_value;
}

API cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t n, void*) {
  if (int r = checked(to, n)) return r;
  memcpy((void*)to, from, n);
  return success;
}

API cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t n, void*) {
  if (int r = checked(from, n)) return r;
  memcpy(to, (void*)from, n);
  return success;
}

API cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t n, void*) {
  if (int r = checked(to, n)) return r;
  if (int r = checked(from, n)) return r;
  memmove((void*)to, (void*)from, n);
  return success;
}

API cuMemsetD8Async(uint64_t to, unsigned char v, size_t n, void*) {
  if (int r = checked(to, n)) return r;
  memset((void*)to, v, n);
  return success;
}

// A module's image is an ELF file, whose length is in its header: the section table is the last thing in it.
static size_t length(const unsigned char* image) {
  uint64_t at;
  uint16_t size, count;
  memcpy(&at, image + 40, 8);
  memcpy(&size, image + 58, 2);
  memcpy(&count, image + 60, 2);
  return at + (size_t)size * count;
}

API cuModuleLoadData(void** out, const void* image) {
  if (memcmp(image, "\x7f" "ELF", 4) != 0) return invalid_image;
  char name[] = "/tmp/triax-module-XXXXXX";
  int fd = mkstemp(name);
  size_t n = length((const unsigned char*)image);
  bool wrote = fd >= 0 && write(fd, image, n) == (ssize_t)n;
  if (fd >= 0) close(fd);
  void* lib = wrote ? dlopen(name, RTLD_NOW | RTLD_LOCAL) : nullptr;
  unlink(name);
  if (!lib) {
    const char* why = dlerror();
    fault = why ? why : "the module cannot be written";
    return invalid_image;
  }
  auto attach = (void (*)(const emu_runtime*))dlsym(lib, "emu_attach");
  if (!attach) return invalid_image;
  attach(&run_time);
  *out = new module{lib, {}};
  return success;
}

API cuModuleUnload(void* m) {
  dlclose(((module*)m)->lib);
  delete (module*)m;
  return success;
}

API cuModuleGetFunction(void** f, void* m, const char* name) {
  module* mod = (module*)m;
  auto entry = (const emu_entry*)dlsym(mod->lib, (std::string("emu_entry_") + name).c_str());
  if (!entry) return not_found;
  *f = &(mod->kernels[name] = {name, entry, 48 << 10});
  return success;
}

API cuFuncSetAttribute(void* f, int what, int v) {
  if (what != 8 || v > 227 << 10) return invalid_value;
  ((kernel*)f)->dynamic = v;
  return success;
}

API cuFuncGetAttribute(int* v, int, void*) {
  *v = 0;
  return success;
}

API cuLaunchKernel(void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void*, void** params, void** extra) {
  if (!current) return invalid_context;
  if (int r = current->broken) return r;
  kernel* k = (kernel*)f;
  if (params || !extra || extra[0] != (void*)1 || extra[2] != (void*)2 || extra[4]) return invalid_value;
  size_t size = *(size_t*)extra[3];
  uint64_t threads = (uint64_t)bx * by * bz;
  if (size != k->entry->size || gx == 0 || gy == 0 || gz == 0 || gy > 65535 || gz > 65535 || threads == 0 || threads > 1024 || (int)shared > k->dynamic) {
    char text[300];
    snprintf(text, sizeof text, "kernel %s: %zu bytes of arguments for %zu, grid %ux%ux%u, block %ux%ux%u, %u bytes of shared memory of %d", k->name.c_str(), size, k->entry->size, gx, gy, gz, bx, by, bz, shared, k->dynamic);
    fault = text;
    return invalid_value;
  }
  if (run_grid(k->name.c_str(), k->entry, (const char*)extra[1], {gx, gy, gz}, {bx, by, bz}, shared, (order)current->order)) return success;
  fault = own->fault;
  return current->broken = launch_failed;
}

API cuGetErrorName(int r, const char** s) {
  switch (r) {
    case success: *s = "CUDA_SUCCESS"; break;
    case invalid_value: *s = "CUDA_ERROR_INVALID_VALUE"; break;
    case out_of_memory: *s = "CUDA_ERROR_OUT_OF_MEMORY"; break;
    case not_initialized: *s = "CUDA_ERROR_NOT_INITIALIZED"; break;
    case no_device: *s = "CUDA_ERROR_NO_DEVICE"; break;
    case invalid_device: *s = "CUDA_ERROR_INVALID_DEVICE"; break;
    case invalid_image: *s = "CUDA_ERROR_INVALID_IMAGE"; break;
    case invalid_context: *s = "CUDA_ERROR_INVALID_CONTEXT"; break;
    case not_found: *s = "CUDA_ERROR_NOT_FOUND"; break;
    case illegal_address: *s = "CUDA_ERROR_ILLEGAL_ADDRESS"; break;
    case launch_failed: *s = "CUDA_ERROR_LAUNCH_FAILED"; break;
    default: return invalid_value;
  }
  return success;
}

API cuGetErrorString(int r, const char** s) {
  if (cuGetErrorName(r, s)) return invalid_value;
  if ((r == invalid_value || r == invalid_image || r == launch_failed) && !fault.empty()) *s = fault.c_str();
  return success;
}
