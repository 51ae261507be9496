package hpa

import (
	"encoding/json"
	"fmt"
)

// cases are the blocks, and courses of usage that show what each of their words does.
func cases() (out []Case) {
	rise, fall := course(60, 40), course(1, 50)
	both := append(course(60, 12), course(2, 40)...)
	wave := []float64{5, 9, 14, 8, 20, 31, 12, 6, 18, 40, 3, 3, 25, 7, 2, 2, 30, 16, 9, 4, 1, 1, 1, 12, 48, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 2, 2, 2, 2, 2, 2}
	add := func(name, block string, replicas int, usage []float64, bounds ...int) {
		c := Case{Name: name, Min: 1, Max: 100, Replicas: replicas, Usage: usage}
		if len(bounds) == 2 {
			c.Min, c.Max = bounds[0], bounds[1]
		}
		if block != "" {
			c.Behavior = json.RawMessage(block)
		}
		out = append(out, c)
	}
	for name, usage := range pairs("rise", rise, "fall", fall, "rise and fall", both, "waves", wave) {
		from := map[string]int{"rise": 3, "fall": 60, "rise and fall": 4, "waves": 6}[name]
		add("no block: "+name, "", from, usage)
		add("an empty block: "+name, `{}`, from, usage)
		add("one empty direction: "+name, `{"scaleUp":{}}`, from, usage)
		add("both windows: "+name, `{"scaleUp":{"stabilizationWindowSeconds":60},"scaleDown":{"stabilizationWindowSeconds":120}}`, from, usage)
		for _, choice := range []string{"Max", "Min", "Disabled"} {
			add(choice+" of two policies: "+name, fmt.Sprintf(`{"scaleUp":{"selectPolicy":%q,"policies":[{"type":"Pods","value":3,"periodSeconds":60},{"type":"Percent","value":50,"periodSeconds":45}]},`+
				`"scaleDown":{"stabilizationWindowSeconds":0,"selectPolicy":%q,"policies":[{"type":"Pods","value":3,"periodSeconds":60},{"type":"Percent","value":50,"periodSeconds":45}]}}`, choice, choice), from, usage)
		}
		add("percent are rounded: "+name, `{"scaleUp":{"policies":[{"type":"Percent","value":7,"periodSeconds":15}]},"scaleDown":{"stabilizationWindowSeconds":0,"policies":[{"type":"Percent","value":7,"periodSeconds":15}]}}`, from, usage)
		add("pods in half a minute: "+name, `{"scaleUp":{"policies":[{"type":"Pods","value":2,"periodSeconds":30}]},"scaleDown":{"stabilizationWindowSeconds":30,"policies":[{"type":"Pods","value":2,"periodSeconds":30}]}}`, from, usage)
		add("200 percent and a long period: "+name, `{"scaleUp":{"policies":[{"type":"Percent","value":200,"periodSeconds":300}]},"scaleDown":{"stabilizationWindowSeconds":15,"policies":[{"type":"Percent","value":10,"periodSeconds":300}]}}`, from, usage)
		add("only up is given: "+name, `{"scaleUp":{"stabilizationWindowSeconds":30,"policies":[{"type":"Pods","value":5,"periodSeconds":15}]}}`, from, usage)
		add("only down is given: "+name, `{"scaleDown":{"stabilizationWindowSeconds":45,"policies":[{"type":"Percent","value":30,"periodSeconds":30},{"type":"Pods","value":4,"periodSeconds":90}]}}`, from, usage)
		add("no tolerance: "+name, `{"scaleUp":{"tolerance":0},"scaleDown":{"tolerance":0,"stabilizationWindowSeconds":0}}`, from, usage)
		add("bounds: "+name, `{"scaleDown":{"stabilizationWindowSeconds":0}}`, from, usage, 5, 20)
		add("bounds without a block: "+name, "", from, usage, 5, 20)
	}
	// Both ends of a tolerance are within it: powers of two, so that ratios are exact.
	ends := `{"scaleUp":{"tolerance":0.25},"scaleDown":{"tolerance":0.5,"stabilizationWindowSeconds":0}}`
	add("the upper end of a tolerance", ends, 8, []float64{10, 10.001, 10})
	add("the lower end of a tolerance", ends, 8, []float64{4, 3.999, 3})
	add("the tolerance of one direction", `{"scaleUp":{"tolerance":0.5},"scaleDown":{"stabilizationWindowSeconds":0}}`, 8, []float64{12, 12.1, 11, 7.1, 7})
	add("the default tolerance, up", `{"scaleDown":{"stabilizationWindowSeconds":0}}`, 10, []float64{11, 11.001, 12})
	add("the default tolerance, down", `{"scaleDown":{"stabilizationWindowSeconds":0}}`, 10, []float64{9, 8.999, 8})
	add("the default tolerance without a block", "", 20, []float64{21, 22, 22.1, 19, 18})
	add("nobody is woken who was switched off", `{}`, 0, []float64{9, 9, 9}, 2, 20)
	add("too many at first", `{"scaleDown":{"selectPolicy":"Disabled"}}`, 30, []float64{30, 30, 5}, 2, 20)
	add("too few at first", `{"scaleUp":{"selectPolicy":"Disabled"}}`, 1, []float64{1, 1, 9}, 4, 20)
	add("a fraction of a pod is a pod", `{"scaleDown":{"stabilizationWindowSeconds":0}}`, 4, []float64{4.5, 6.01, 7, 2.2, 1.01, 1})
	return out
}

func course(usage float64, looks int) (out []float64) {
	for range looks {
		out = append(out, usage)
	}
	return out
}

// pairs yields names and courses in the order in which they are given.
func pairs(of ...any) func(yield func(string, []float64) bool) {
	return func(yield func(string, []float64) bool) {
		for i := 0; i+1 < len(of); i += 2 {
			if !yield(of[i].(string), of[i+1].([]float64)) {
				return
			}
		}
	}
}
