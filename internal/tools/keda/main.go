// Command keda-scaler asks an external scaler as KEDA does, with KEDA's own code: it opens
// a scaler from the metadata of a trigger and prints one JSON line of what KEDA would hand
// to the HorizontalPodAutoscaler for each line of its input. build.sh builds it.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	v2 "k8s.io/api/autoscaling/v2"

	"github.com/kedacore/keda/v2/pkg/scalers/scalersconfig"

	"github.com/trimtab/trimtab/internal/tools/keda/scalers"
)

// answer is the result of one look: the values, or why there are none.
type answer struct {
	Metric string    `json:"metric"`
	Target float64   `json:"target"`
	Values []float64 `json:"values"`
	Active bool      `json:"active"`
	Error  string    `json:"error"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) < 4 {
		return fmt.Errorf("want NAMESPACE NAME KEY=VALUE…")
	}
	c := &scalersconfig.ScalerConfig{ScalableObjectNamespace: os.Args[1], ScalableObjectName: os.Args[2], ScalableObjectType: "ScaledObject",
		TriggerMetadata: map[string]string{}, ResolvedEnv: map[string]string{}, AuthParams: map[string]string{}, GlobalHTTPTimeout: 3 * time.Second, MetricType: v2.AverageValueMetricType}
	for _, pair := range os.Args[3:] {
		key, value, _ := strings.Cut(pair, "=")
		if file, isFile := strings.CutPrefix(value, "@"); isFile { // of a TriggerAuthentication
			b, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			c.AuthParams[key] = string(b)
			continue
		}
		c.TriggerMetadata[key] = value
	}
	s, err := scalers.NewExternalScaler(c)
	if err != nil {
		return err
	}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		b, err := json.Marshal(look(s))
		if err != nil {
			return err
		}
		fmt.Println(string(b))
	}
	return nil
}

func look(s scalers.Scaler) (a answer) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for _, m := range s.GetMetricSpecForScaling(ctx) {
		a.Metric = m.External.Metric.Name
		if v := m.External.Target.AverageValue; v != nil {
			a.Target = v.AsApproximateFloat64()
		}
	}
	if a.Metric == "" {
		a.Error = "no metric"
		return a
	}
	values, active, err := s.GetMetricsAndActivity(ctx, a.Metric)
	if err != nil {
		a.Error = err.Error()
	}
	a.Active = active
	for i := range values {
		a.Values = append(a.Values, values[i].Value.AsApproximateFloat64())
	}
	return a
}
