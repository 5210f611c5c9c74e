// A library with the run-time compiler's functions that compiles with g++: a "cubin" is a shared object. WORDS is the file that is
// put in front.
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <string>

#define API extern "C" __attribute__((visibility("default"))) int

struct program {
  std::string source, log, image;
};

API nvrtcVersion(int* major, int* minor) {
  *major = 12;
  *minor = 9;
  return 0;
}

API nvrtcCreateProgram(void** out, const char* source, const char*, int, const char* const*, const char* const*) {
  *out = new program{source, "", ""};
  return 0;
}

API nvrtcDestroyProgram(void** p) {
  delete (program*)*p;
  *p = nullptr;
  return 0;
}

static std::string slurp(const std::string& path) {
  std::string text;
  if (FILE* f = fopen(path.c_str(), "rb")) {
    char part[65536];
    while (size_t n = fread(part, 1, sizeof part, f)) text.append(part, n);
    fclose(f);
  }
  return text;
}

// exports lists the kernels at the source's end, so that the driver finds them.
static std::string exports(const std::string& source) {
  std::string out;
  const std::string mark = "\nKERNEL(";
  for (size_t at = 0; (at = source.find(mark, at)) != std::string::npos;) {
    at += mark.size();
    out += "EMU_EXPORT(" + source.substr(at, source.find(')', at) - at) + ")\n";
  }
  return out;
}

API nvrtcCompileProgram(void* p, int n, const char* const* options) {
  program* prog = (program*)p;
  char folder[] = "/tmp/triax-nvrtc-XXXXXX";
  if (!mkdtemp(folder)) return 6;
  std::string dir = folder, flags;
  for (int i = 0; i < n; i++)
    if (strncmp(options[i], "-D", 2) == 0) flags += std::string(" ") + options[i];
  if (FILE* f = fopen((dir + "/k.cc").c_str(), "wb")) {
    std::string text = prog->source + "\n" + exports(prog->source);
    fwrite(text.data(), 1, text.size(), f);
    fclose(f);
  }
  std::string command = "g++ -std=c++17 -O2 -ffp-contract=off -fPIC -shared -w -include " WORDS + flags + " -o " + dir + "/k.so " + dir + "/k.cc >" + dir + "/log 2>&1";
  int r = system(command.c_str());
  prog->log = slurp(dir + "/log");
  prog->image = slurp(dir + "/k.so");
  for (const char* f : {"/k.cc", "/k.so", "/log", ""}) remove((dir + f).c_str());
  return r == 0 ? 0 : 6;  // NVRTC_ERROR_COMPILATION
}

API nvrtcGetCUBINSize(void* p, size_t* n) {
  *n = ((program*)p)->image.size();
  return 0;
}

API nvrtcGetCUBIN(void* p, char* to) {
  memcpy(to, ((program*)p)->image.data(), ((program*)p)->image.size());
  return 0;
}

API nvrtcGetProgramLogSize(void* p, size_t* n) {
  *n = ((program*)p)->log.size() + 1;
  return 0;
}

API nvrtcGetProgramLog(void* p, char* to) {
  memcpy(to, ((program*)p)->log.c_str(), ((program*)p)->log.size() + 1);
  return 0;
}

extern "C" __attribute__((visibility("default"))) const char* nvrtcGetErrorString(int r) {
  return r == 0 ? "NVRTC_SUCCESS" : r == 6 ? "NVRTC_ERROR_COMPILATION" : "NVRTC_ERROR_INTERNAL_ERROR";
}
