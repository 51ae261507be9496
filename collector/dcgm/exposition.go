package dcgm

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/trimtab/trimtab"
)

// The DCGM metrics that this package reads.
const (
	active = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
	util   = "DCGM_FI_DEV_GPU_UTIL"
	used   = "DCGM_FI_DEV_FB_USED"
	free   = "DCGM_FI_DEV_FB_FREE"
	power  = "DCGM_FI_DEV_POWER_USAGE"
)

// most returns the largest valid value of a metric. DCGM marks values that a GPU does not report by
// numbers far above it.
func most(metric string) float64 {
	switch metric {
	case active:
		return 1
	case util:
		return 100
	case used, free: // in MiB
		return 1 << 24
	case power: // in W
		return 1e5
	}
	return -1
}

// Bounds on an exposition. A node with 16 GPUs of 7 MIG instances, each shared by 10 pods, has
// 5,600 lines that this package reads.
const (
	maxBody    = 16 << 20
	maxLine    = 64 << 10
	maxLines   = 20_000
	maxDevices = 1000
	maxName    = 100
)

// device is a GPU, or one of its MIG instances.
type device struct{ uuid, mig string }

// name returns the device's name in samples.
func (d device) name() string {
	if d.mig == "" {
		return d.uuid
	}
	return d.uuid + "/" + d.mig
}

// holder is the pod or job that has a device; the zero holder is that of lines without a pod or
// job.
type holder struct{ namespace, pod, job string }

// gpu has the values reported for a device, by metric and holder. NaN: the exporter reported
// different values.
type gpu struct {
	values  map[string]map[holder]float64
	holders map[holder]bool
	// about describes the device for people.
	about string
	// profile is the profile of a MIG instance, such as 1g.10gb.
	profile string
}

// decode parses an exposition. It skips lines of other metrics, and invalid values.
func decode(r io.Reader) (map[device]*gpu, error) {
	limited := &io.LimitedReader{R: r, N: maxBody + 1}
	lines := bufio.NewScanner(limited)
	lines.Buffer(nil, maxLine)
	var text bytes.Buffer
	n := 0
	for lines.Scan() {
		line := bytes.TrimSpace(lines.Bytes())
		name, _, _ := strings.Cut(string(line[:min(len(line), len(active)+1)]), "{")
		if most(strings.TrimSpace(name)) < 0 {
			continue
		}
		if n++; n > maxLines {
			return nil, trimtab.Invalidf("read exposition: more than %d series of GPUs", maxLines)
		}
		text.Write(line)
		text.WriteByte('\n')
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read exposition: %w", err)
	}
	if limited.N <= 0 {
		return nil, trimtab.Invalidf("read exposition: more than %d bytes", maxBody)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(&text)
	if err != nil {
		return nil, fmt.Errorf("read exposition: %w", err)
	}
	all := map[device]*gpu{}
	for name, f := range families {
		for _, m := range f.Metric {
			if v := m.GetUntyped().GetValue(); v >= 0 && v <= most(name) {
				add(all, name, m.Label, v)
			}
		}
	}
	if len(all) > maxDevices {
		return nil, trimtab.Invalidf("read exposition: more than %d GPUs and MIG instances", maxDevices)
	}
	return all, nil
}

// add adds one line.
func add(all map[device]*gpu, metric string, labels []*dto.LabelPair, v float64) {
	of := func(names ...string) string {
		for _, l := range labels {
			for _, n := range names {
				if l.GetName() == n && l.GetValue() != "" {
					return l.GetValue()
				}
			}
		}
		return ""
	}
	d := device{of("UUID", "uuid"), of("GPU_I_ID")}
	h := holder{of("namespace", "pod_namespace"), of("pod", "pod_name"), of("hpc_job")}
	if h.pod == "" {
		h.namespace = ""
	}
	if d.uuid == "" || len(d.name()) > maxName || len(h.pod) > 253 {
		return
	}
	g := all[d]
	if g == nil {
		g = &gpu{values: map[string]map[holder]float64{}, holders: map[holder]bool{}, profile: of("GPU_I_PROFILE")}
		g.about = fmt.Sprintf("GPU %.8s %.60s", of("gpu"), of("modelName"))
		if d.mig != "" {
			g.about += fmt.Sprintf(", MIG %.30s", g.profile)
		}
		all[d] = g
	}
	if g.values[metric] == nil {
		g.values[metric] = map[holder]float64{}
	}
	if before, told := g.values[metric][h]; told && before != v {
		v = math.NaN()
	}
	g.values[metric][h] = v
	if h != (holder{}) {
		g.holders[h] = true
	}
}
