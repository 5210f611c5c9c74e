package driver

import (
	"os"
	"path/filepath"
	"strings"
)

// Libraries are names or paths to try for each library, in order.
type Libraries struct {
	Driver, Compiler, BLAS, NCCL []string
}

// Find lists where the libraries may be: what the environment names (TRIAX_LIBCUDA and so on) and nothing else when it does; else the
// loader's own search, CUDA_HOME and CUDA_PATH, then folders of Python wheels.
func Find() Libraries { return find(os.Getenv, glob) }

func glob(pattern string) []string {
	paths, _ := filepath.Glob(pattern) // the patterns are ours, and well formed
	return paths
}

func find(env func(string) string, glob func(string) []string) Libraries {
	homes := []string{env("CUDA_HOME"), env("CUDA_PATH"), "/usr/local/cuda"}
	wheels := []string{"/usr/lib/python3*/*-packages", "/usr/local/lib/python3*/*-packages", "/opt/*/lib/python3*/site-packages"}
	if venv := env("VIRTUAL_ENV"); venv != "" {
		wheels = append([]string{venv + "/lib/python3*/site-packages"}, wheels...)
	}
	if home := env("HOME"); home != "" {
		wheels = append(wheels, home+"/.local/lib/python3*/site-packages")
	}
	search := func(key string, names, folders []string) (out []string) {
		if path := env(key); path != "" {
			return []string{path}
		}
		out = append(out, names...)
		var patterns []string
		for _, home := range homes {
			if home != "" {
				patterns = append(patterns, home+"/lib64", home+"/targets/*/lib")
			}
		}
		for _, w := range wheels {
			for _, f := range folders {
				patterns = append(patterns, filepath.Join(w, "nvidia", f, "lib"))
			}
		}
		for _, p := range patterns {
			for _, n := range names {
				for _, hit := range glob(filepath.Join(p, n)) {
					if !strings.Contains(hit, "stubs") { // libraries to link with, that refuse every call
						out = append(out, hit)
					}
				}
			}
		}
		return out
	}
	return Libraries{
		Driver:   search("TRIAX_LIBCUDA", []string{"libcuda.so.1"}, nil),
		Compiler: search("TRIAX_LIBNVRTC", []string{"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"}, []string{"cu13", "cuda_nvrtc"}),
		BLAS:     search("TRIAX_LIBCUBLASLT", []string{"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11"}, []string{"cu13", "cublas"}),
		NCCL:     search("TRIAX_LIBNCCL", []string{"libnccl.so.2"}, []string{"nccl"}),
	}
}
