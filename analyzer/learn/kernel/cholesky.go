package kernel

import (
	"math"

	"gonum.org/v1/gonum/floats"
)

// cholesky is the lower triangle L of a symmetric matrix A = L Lᵀ of n rows, row after row; what is
// above the diagonal is never read. gonum/mat has the same, but brings the whole of LAPACK into the
// binary, where nothing else needs it.
type cholesky struct {
	n int
	l []float64
}

// row returns row i up to and without the diagonal, and the element on it.
func (c cholesky) row(i int) ([]float64, float64) { return c.l[i*c.n : i*c.n+i], c.l[i*c.n+i] }

// factorize replaces A, of which it reads the lower triangle, by L; false: A is not positive definite.
func (c cholesky) factorize() bool {
	for i := range c.n {
		above, _ := c.row(i)
		for j := range above {
			row, diagonal := c.row(j)
			above[j] = (above[j] - floats.Dot(above[:j], row)) / diagonal
		}
		d := c.l[i*c.n+i] - floats.Dot(above, above)
		if !(d > 0) || math.IsInf(d, 1) {
			return false
		}
		c.l[i*c.n+i] = math.Sqrt(d)
	}
	return true
}

// forward replaces x by L⁻¹ x.
func (c cholesky) forward(x []float64) {
	for i := range x {
		row, diagonal := c.row(i)
		x[i] = (x[i] - floats.Dot(row, x[:i])) / diagonal
	}
}

// solve replaces x by A⁻¹ x.
func (c cholesky) solve(x []float64) {
	c.forward(x)
	for i := c.n - 1; i >= 0; i-- {
		row, diagonal := c.row(i)
		x[i] /= diagonal
		floats.AddScaled(x[:i], -x[i], row)
	}
}

// logDet returns log |A|.
func (c cholesky) logDet() float64 {
	sum := 0.0
	for i := range c.n {
		_, diagonal := c.row(i)
		sum += 2 * math.Log(diagonal)
	}
	return sum
}
