package kernel

import (
	"math"

	"gonum.org/v1/gonum/floats"
)

// Cholesky is the lower triangle L of a symmetric matrix A = L Lᵀ of n rows, row after row; what is
// above the diagonal is never read. gonum/mat has the same, but brings the whole of LAPACK into the
// binary, where nothing else needs it.
type Cholesky struct {
	N int
	L []float64
}

// Row returns row i up to and without the diagonal, and the element on it.
func (c Cholesky) Row(i int) ([]float64, float64) { return c.L[i*c.N : i*c.N+i], c.L[i*c.N+i] }

// Factorize replaces A, of which it reads the lower triangle, by L; false: A is not positive definite.
func (c Cholesky) Factorize() bool {
	for i := range c.N {
		above, _ := c.Row(i)
		for j := range above {
			row, diagonal := c.Row(j)
			above[j] = (above[j] - floats.Dot(above[:j], row)) / diagonal
		}
		d := c.L[i*c.N+i] - floats.Dot(above, above)
		if !(d > 0) || math.IsInf(d, 1) {
			return false
		}
		c.L[i*c.N+i] = math.Sqrt(d)
	}
	return true
}

// Forward replaces x by L⁻¹ x.
func (c Cholesky) Forward(x []float64) {
	for i := range x {
		row, diagonal := c.Row(i)
		x[i] = (x[i] - floats.Dot(row, x[:i])) / diagonal
	}
}

// Solve replaces x by A⁻¹ x.
func (c Cholesky) Solve(x []float64) {
	c.Forward(x)
	for i := c.N - 1; i >= 0; i-- {
		row, diagonal := c.Row(i)
		x[i] /= diagonal
		floats.AddScaled(x[:i], -x[i], row)
	}
}

// LogDet returns log |A|.
func (c Cholesky) LogDet() float64 {
	sum := 0.0
	for i := range c.N {
		_, diagonal := c.Row(i)
		sum += 2 * math.Log(diagonal)
	}
	return sum
}
