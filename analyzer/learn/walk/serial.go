package walk

// memory is the number of reports over which the serial correlation is computed; steady, how many
// uncorrelated ones are assumed before the first.
const memory, steady = 200, 30

// Serial estimates how much noise persists from one report to the next.
type Serial struct {
	// Last is the last standardised residual; Square and Product the faded
	// sums of its square and of its product with the one before.
	Last    float64 `json:"last"`
	Square  float64 `json:"square"`
	Product float64 `json:"product"`
}

// See reads the next standardised residual.
func (s *Serial) See(residual float64) {
	residual = Within(residual, 3)
	const fade = 1 - 1.0/memory
	s.Square = s.Square*fade + residual*residual
	s.Product = s.Product*fade + residual*s.Last
	s.Last = residual
}

// Factor returns by how much correlation from report to report raises the
// variance of a mean: (1+ρ)/(1−ρ) with ρ >= 0.
func (s *Serial) Factor() float64 {
	rho := max(0, min(0.9, s.Product/(s.Square+steady)))
	return (1 + rho) / (1 - rho)
}
