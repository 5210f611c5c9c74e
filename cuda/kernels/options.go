package kernels

// Options are what the compiler is told for an architecture ("sm_90") and a storage type, besides the source.
func Options(arch string, bf16 bool) []string {
	options := []string{"--gpu-architecture=" + arch, "--std=c++17", "--fmad=true"}
	if bf16 {
		options = append(options, "-DSTORE_BF16")
	}
	return options
}
