package kubernetes

import (
	_ "embed" // the loads
	"math"
	"strconv"
	"strings"

	"github.com/trimtab/trimtab/sim/kubernetes"
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

const (
	// day has so many seconds.
	day = 86400
	// podCores is the size of a pod, in cores; the others bound what trimtab may choose.
	podCores             = 1.0
	leastCores, maxCores = 0.1, 2.0
	// stepCores are the steps of trimtab-steps; nodeCores is what a node of 8 cores has for pods.
	stepCores, nodeCores = 0.25, 7.91
	maxPods              = 60
)

// Service is one service.
type Service struct {
	kubernetes.Service
	// Cores is the mean work of its requests over the scored day, in cores.
	Cores float64
	// Shift is how much later its day begins, in h.
	Shift float64
}

// at returns the recorded load at a second of the two days, interpolated linearly.
func (s *Service) at(trace []float64, second float64) float64 {
	n := float64(len(trace))
	x := math.Mod(second/(2*day)*n+n-s.Shift*3600/(2*day)*n, n)
	i := int(x)
	a, b := trace[i%len(trace)], trace[(i+1)%len(trace)]
	return a + (b-a)*(x-float64(i))
}

// Services returns the ten services.
func Services() []Service {
	out := make([]Service, 10)
	for i := range out {
		f := float64(i)
		out[i] = Service{
			Service: kubernetes.Service{
				Name: "service-" + strconv.Itoa(i), Fraction: 0.95,
				Cost:      []float64{0.010, 0.020, 0.015, 0.040, 0.008, 0.025, 0.012, 0.030, 0.018, 0.050}[i],
				Latency:   []float64{0.15, 0.20, 0.20, 0.40, 0.10, 0.25, 0.15, 0.30, 0.20, 0.50}[i],
				Variation: []float64{1, 0.8, 1.2, 1, 0.9, 1.1, 0.8, 1, 1.2, 0.9}[i],
				Startup:   5 + 55*f/9, // 5 to 60 s
			},
			Cores: []float64{6, 3, 8, 4, 2, 5, 10, 3, 4, 6}[i],
			Shift: 0.5 * math.Mod(3*f, 5),
		}
	}
	return out
}
