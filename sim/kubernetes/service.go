package kubernetes

import (
	_ "embed" // the loads
	"math"
	"strconv"
	"strings"
)

//go:embed clarknet.txt
var clarkNet string

//go:embed worldcup.txt
var worldCup string

//go:embed nasa.txt
var nasa string

// LoadNames are the recorded loads.
func LoadNames() []string { return []string{"clarknet", "worldcup", "nasa"} }

// load returns a recorded load over two days, with a mean of 1 over the second.
func load(name string) []float64 {
	text := map[string]string{"clarknet": clarkNet, "worldcup": worldCup, "nasa": nasa}[name]
	var out []float64
	for _, line := range strings.Fields(text) {
		if v, err := strconv.ParseFloat(line, 64); err == nil {
			out = append(out, v)
		}
	}
	sum := 0.0
	for _, v := range out[len(out)/2:] {
		sum += v
	}
	mean := sum / float64(len(out)-len(out)/2)
	for i := range out {
		out[i] /= mean
	}
	return out
}

// Service is one service.
type Service struct {
	Name string `json:"name"`
	// Cost is the work of a request, in core-seconds; Latency and Fraction are the SLO; Variation
	// is κ.
	Cost      float64 `json:"cost_s"`
	Latency   float64 `json:"latency_s"`
	Fraction  float64 `json:"fraction"`
	Variation float64 `json:"kappa"`
	// Cores is the mean work of its requests over the scored day, in cores.
	Cores float64 `json:"cores"`
	// Startup is the mean start time of a pod, in s; Shift is how much later its day begins, in h.
	Startup float64 `json:"startup_s"`
	Shift   float64 `json:"shift_h"`
}

// Services returns the ten services.
func Services() []Service {
	out := make([]Service, 10)
	for i := range out {
		f := float64(i)
		out[i] = Service{
			Name: "service-" + strconv.Itoa(i), Fraction: 0.95,
			Cost:      []float64{0.010, 0.020, 0.015, 0.040, 0.008, 0.025, 0.012, 0.030, 0.018, 0.050}[i],
			Latency:   []float64{0.15, 0.20, 0.20, 0.40, 0.10, 0.25, 0.15, 0.30, 0.20, 0.50}[i],
			Variation: []float64{1, 0.8, 1.2, 1, 0.9, 1.1, 0.8, 1, 1.2, 0.9}[i],
			Cores:     []float64{6, 3, 8, 4, 2, 5, 10, 3, 4, 6}[i],
			Startup:   5 + 55*f/9, // 5 to 60 s
			Shift:     0.5 * math.Mod(3*f, 5),
		}
	}
	return out
}

// late returns the share of requests that are late in n pods of a cores under that load.
func (s *Service) late(n int, a, rate, backlog float64) float64 {
	if n == 0 || a <= 0 {
		return 1
	}
	total := float64(n) * a / s.Cost
	rho := rate / total
	if rho >= 1 || backlog > total*s.Latency {
		return 1
	}
	wait := backlog / total // new requests wait this long for the backlog
	return math.Min(1, rho*math.Exp(-s.Variation*(a/s.Cost-rate/float64(n))*(s.Latency-wait)))
}
