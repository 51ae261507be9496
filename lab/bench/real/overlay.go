package main

import (
	"fmt"

	"github.com/goccy/go-yaml"

	"github.com/trimtab/trimtab"
)

// overlay lays the YAML over onto the YAML base: mappings are merged, anything
// else is replaced. A mapping under "each_workload" is laid over every
// workload. An empty over leaves base as it is, byte by byte.
func overlay(base, over []byte) ([]byte, error) {
	var top, under map[string]any
	if err := yaml.Unmarshal(over, &top); err != nil {
		return nil, trimtab.Invalidf("read what overrides trimtab's file: %w", err)
	}
	if len(top) == 0 {
		return base, nil
	}
	if err := yaml.Unmarshal(base, &under); err != nil {
		return nil, fmt.Errorf("read trimtab's own file: %w", err)
	}
	if each, ok := top["each_workload"].(map[string]any); ok {
		delete(top, "each_workload")
		list, _ := under["workloads"].([]any)
		for _, w := range list {
			if m, ok := w.(map[string]any); ok {
				merge(m, each)
			}
		}
	}
	merge(under, top)
	out, err := yaml.Marshal(under)
	if err != nil {
		return nil, fmt.Errorf("write trimtab's file: %w", err)
	}
	return out, nil
}

func merge(under, over map[string]any) {
	for key, v := range over {
		a, okA := under[key].(map[string]any)
		b, okB := v.(map[string]any)
		if okA && okB {
			merge(a, b)
			continue
		}
		under[key] = v
	}
}
