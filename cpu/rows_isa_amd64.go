package cpu

// rowKernels are the row kernels for T: only float32 has any.
func rowKernels[T float](isa ISA) *rowOps {
	var zero T
	if _, ok := any(zero).(float32); !ok {
		return nil
	}
	switch isa {
	case AVX512:
		return &rowOps{
			exp: rowExpAVX512, expSum: rowExpSumAVX512, max: rowMaxAVX512, add: rowAddAVX512, scale: rowScaleAVX512, dot: rowDotAVX512,
			gelu: rowGeluAVX512, geluGrad: rowGeluGradAVX512, swiglu: rowSwiGLUAVX512, swigluGrad: rowSwiGLUGradAVX512,
			sum: rowSumAVX512, squares: rowSquaresAVX512, norm: rowNormAVX512, rms: rowRMSAVX512, normSums: rowNormSumsAVX512,
			normGrad: rowNormGradAVX512, normWeight: rowNormWeightAVX512, scores: rowScoresAVX512, adamw: rowAdamWAVX512,
			scaleTo: rowScaleToAVX512, rope: rowRopeAVX512, blind: rowBlindAVX512, sgd: rowSGDAVX512, momentum: rowMomentumAVX512,
			sumSquares: sumSquaresAVX512, group: 32,
			dropout: rowDropoutAVX512, fromBF16: rowFromBF16AVX512, toBF16: rowToBF16AVX512,
		}
	case AVX2:
		return &rowOps{
			exp: rowExpAVX2, expSum: rowExpSumAVX2, max: rowMaxAVX2, add: rowAddAVX2, scale: rowScaleAVX2, dot: rowDotAVX2,
			gelu: rowGeluAVX2, geluGrad: rowGeluGradAVX2, swiglu: rowSwiGLUAVX2, swigluGrad: rowSwiGLUGradAVX2,
			sum: rowSumAVX2, squares: rowSquaresAVX2, norm: rowNormAVX2, rms: rowRMSAVX2, normSums: rowNormSumsAVX2,
			normGrad: rowNormGradAVX2, normWeight: rowNormWeightAVX2, scores: rowScoresAVX2, adamw: rowAdamWAVX2,
			scaleTo: rowScaleToAVX2, rope: rowRopeAVX2, blind: rowBlindAVX2, sgd: rowSGDAVX2, momentum: rowMomentumAVX2,
			sumSquares: sumSquaresAVX2, group: 16,
		}
	}
	return nil
}
