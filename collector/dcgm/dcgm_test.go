package dcgm

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector/poll"
	"github.com/trimtab/trimtab/collector/poll/polltest"
	"github.com/trimtab/trimtab/internal/leak"
	"github.com/trimtab/trimtab/quantity"
)

func TestMain(m *testing.M) { leak.Main(m) }

// The files of testdata have the form of the exporter's sources, with values of our own.
func page(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// exporter answers with a text, and with a status if it is not 200.
type exporter struct {
	*httptest.Server
	text   string
	status int
}

func newExporter(t *testing.T, text string) *exporter {
	t.Helper()
	e := &exporter{text: text, status: http.StatusOK}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.WriteHeader(e.status)
		_, _ = io.WriteString(w, e.text)
	}))
	t.Cleanup(e.Close)
	return e
}

// ofShop is a cluster whose pods model-… are of workload model.
func ofShop(namespace, pod string) string {
	if namespace == "shop" && strings.HasPrefix(pod, "model-") {
		return "model"
	}
	return ""
}

func polled(t *testing.T, e *exporter) *polltest.Polled {
	t.Helper()
	return polltest.Open(t, Source(), poll.Config{Settings: []string{e.URL}, Pod: ofShop})
}

const mib = float64(1 << 20)

const (
	gpu0 = ".host/h/GPU-11111111-aaaa-bbbb-cccc-000000000000"
	gpu1 = ".host/h/GPU-22222222-aaaa-bbbb-cccc-000000000000"
	gpu2 = ".host/h/GPU-33333333-aaaa-bbbb-cccc-000000000000"
)

func same(t *testing.T, got, want map[string]any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAPodThatHasGPUsAloneHasTheirSum(t *testing.T) {
	same(t, polled(t, newExporter(t, page(t, "whole"))).Next(), map[string]any{
		gpu0 + " gpu_use": 0.5, gpu0 + " gpu_memory": 1024 * mib, gpu0 + " gpu_memory_free": 38976 * mib, gpu0 + " gpu_power": 250.5,
		gpu1 + " gpu_use": 0.75, gpu1 + " gpu_memory": 2048 * mib, gpu1 + " gpu_memory_free": 37952 * mib, gpu1 + " gpu_power": 300.25,
		gpu2 + " gpu_use": 0.0, gpu2 + " gpu_memory": 0.0, gpu2 + " gpu_memory_free": 40000 * mib, gpu2 + " gpu_power": 60.0,
		"model/h/model-6d5f-x gpu_use": 1.25, "model/h/model-6d5f-x gpu_memory": 3072 * mib, "model/h/model-6d5f-x gpu_power": 550.75,
	})
}

func TestOfASharedGPUPodsHaveWhatIsTakenByProcessAndTheRestIsMissing(t *testing.T) {
	same(t, polled(t, newExporter(t, page(t, "shared"))).Next(), map[string]any{
		gpu0 + " gpu_use": 0.7, gpu0 + " gpu_memory": 900 * mib, gpu0 + " gpu_memory_free": 14000 * mib, gpu0 + " gpu_power": 55.0,
		"model/h/model-a gpu_use": 0.3, "model/h/model-a gpu_memory": 300 * mib, "model/h/model-a gpu_power": shared,
		"model/h/model-b gpu_use": 0.45, "model/h/model-b gpu_memory": 500 * mib, "model/h/model-b gpu_power": shared,
		"model/h/model-c gpu_use": 0.0, "model/h/model-c gpu_memory": 0.0, "model/h/model-c gpu_power": shared,
	})
}

func TestValuesThatAreCopiedForEachPodCountOnceAndAreNobodys(t *testing.T) {
	got := polled(t, newExporter(t, page(t, "copied"))).Next()
	for name, v := range got {
		if strings.HasPrefix(name, "model/") != (v == shared) {
			t.Errorf("%s: %v", name, v)
		}
	}
	if len(got) != 4+9 || got[gpu0+" gpu_memory"] != 900*mib || got[gpu0+" gpu_use"] != 0.77 {
		t.Errorf("%v", got)
	}
}

func TestMIGInstancesAreToldApartAndTheirPowerIsThatOfTheirGPU(t *testing.T) {
	same(t, polled(t, newExporter(t, page(t, "mig"))).Next(), map[string]any{
		gpu0 + "/1 gpu_use": 0.9, gpu0 + "/1 gpu_memory": 5000 * mib, gpu0 + "/1 gpu_memory_free": 9000 * mib,
		gpu0 + "/3 gpu_use": 0.25, gpu0 + "/3 gpu_memory": 1000 * mib, gpu0 + "/3 gpu_memory_free": 9000 * mib,
		gpu0 + " gpu_power": 210.0,
		// Two jobs of a batch system have it.
		gpu1 + " gpu_use": 0.1, gpu1 + " gpu_memory": 1000 * mib, gpu1 + " gpu_memory_free": 39000 * mib, gpu1 + " gpu_power": 99.0,
		"model/h/model-m gpu_use": 0.9, "model/h/model-m gpu_memory": 5000 * mib, "model/h/model-m gpu_power": wholeGPU,
		"model/h/model-n gpu_use": 0.25, "model/h/model-n gpu_memory": 1000 * mib, "model/h/model-n gpu_power": wholeGPU,
	})
}

func TestOldNamesAreReadAndDCGMsMarksAreMissing(t *testing.T) {
	same(t, polled(t, newExporter(t, page(t, "old"))).Next(), map[string]any{
		gpu0 + " gpu_use": 0.4, gpu0 + " gpu_memory": unreported, gpu0 + " gpu_memory_free": unreported, gpu0 + " gpu_power": unreported,
		"model/h/model-old gpu_use": 0.4, "model/h/model-old gpu_memory": unreported, "model/h/model-old gpu_power": unreported,
	})
}

func TestTheNoteSaysWhatAPodHas(t *testing.T) {
	for name, want := range map[string]string{"whole": "2 x GPU", "shared": "1 x GPU shared by 3", "mig": "1 x MIG 3g.20gb, 1 x MIG 2g.10gb"} {
		all, err := decode(strings.NewReader(page(t, name)))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range ofPods(all, "h", ofShop) {
			if !strings.Contains(want, s.Note) || s.Note == "" {
				t.Errorf("%s: %q, want %q", name, s.Note, want)
			}
		}
	}
}

func TestAnExporterThatIsAwayIsSaidAndAskedAgain(t *testing.T) {
	e := newExporter(t, page(t, "whole"))
	e.status = http.StatusServiceUnavailable
	p := polled(t, e)
	if lacks := fmt.Sprint(p.Unavailable()); !strings.Contains(lacks, "no DCGM exporter at "+e.URL+"/metrics: ask exporter: it answers 503 (start dcgm-exporter") {
		t.Errorf("%s", lacks)
	}
	if got := p.Next(); len(got) != 0 {
		t.Errorf("of an exporter that never answered: %v", got)
	}
	e.status = http.StatusOK
	if got := p.Next(); len(got) != 15 || got["model/h/model-6d5f-x gpu_power"] != 550.75 {
		t.Errorf("%v", got)
	}
	if lacks := p.Unavailable(); len(lacks) > 0 {
		t.Errorf("it is back, and lacks %v", lacks)
	}
	for what, do := range map[string]func(){
		"status":    func() { e.status = http.StatusFound },
		"no GPU":    func() { e.status, e.text = http.StatusOK, "# nothing\n" },
		"no number": func() { e.text = `DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="x"} many` },
		"a torn line": func() {
			e.text = strings.TrimSuffix(page(t, "whole"), "\n") + `\nDCGM_FI_DEV_GPU_UTIL{gpu="0`
		},
		"a long line":   func() { e.text = strings.Repeat("x", 1<<20) },
		"a long answer": func() { e.text = strings.Repeat("# x\n", maxBody/4+1) },
	} {
		do()
		got := p.Next()
		for name, v := range got {
			if v != poll.Unreadable {
				t.Errorf("%s: %s is %v", what, name, v)
			}
		}
		if len(got) != 15 {
			t.Errorf("%s: %d values", what, len(got))
		}
		e.status = http.StatusOK
	}
	e.Close()
	if got := p.Next(); len(got) != 15 {
		t.Errorf("nobody listens: %v", got)
	}
}

func TestWhatTheCountersFileLeavesOutIsSaid(t *testing.T) {
	e := newExporter(t, `DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="x"} 5`+"\n")
	lacks := fmt.Sprint(polled(t, e).Unavailable())
	for _, want := range []string{"gpu_memory: the exporter does not tell DCGM_FI_DEV_FB_USED", "gpu_power: "} {
		if !strings.Contains(lacks, want) || strings.Contains(lacks, "gpu_use") {
			t.Errorf("%s", lacks)
		}
	}
}

func TestAHundredThousandSeriesAreRefusedAndOthersAreSkipped(t *testing.T) {
	var many, other strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&many, "DCGM_FI_DEV_GPU_UTIL{UUID=\"%d\"} 1\n", i)
		fmt.Fprintf(&other, "DCGM_FI_DEV_SM_CLOCK{UUID=\"%d\"} 1\n", i)
	}
	if _, err := decode(strings.NewReader(many.String())); err == nil {
		t.Error("a host with 100,000 GPUs")
	}
	all, err := decode(strings.NewReader(other.String() + page(t, "whole")))
	if err != nil || len(all) != 3 {
		t.Errorf("%d GPUs, %v", len(all), err)
	}
}

func TestTheAddressIsChecked(t *testing.T) {
	for setting, good := range map[string]bool{
		"http://localhost:9400/metrics": true, "https://[::1]:9400": true, "localhost:9400": false, "": false, "file:///etc/passwd": false,
		"http://": false, "http://me:secret@host/": false, "http://a\x00b": false,
	} {
		hint, err := Source().Check(setting)
		if (err == nil) != good || (hint == "") != good {
			t.Errorf("%q: %v, %q", setting, err, hint)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%v", err)
		}
	}
}

func FuzzAnyExpositionGivesValidSamples(f *testing.F) {
	for _, name := range []string{"whole", "shared", "copied", "mig", "old"} {
		f.Add(page(f, name))
	}
	f.Add(`DCGM_FI_DEV_FB_USED{UUID="x",pod="model-p",namespace="shop"} NaN` + "\n" + `DCGM_FI_DEV_FB_USED{UUID="x"} +Inf` + "\n")
	f.Fuzz(func(t *testing.T, text string) {
		all, err := decode(strings.NewReader(text))
		if err != nil {
			return
		}
		for _, s := range append(ofHost(all), ofPods(all, "h", func(string, string) string { return "w" })...) {
			s.Time, s.Source, s.Host = time.Unix(1, 0), "dcgm", "h"
			if s.Missing != "" {
				s.Value = 0
			}
			if err := s.Validate(); err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			if s.Quantity == quantity.GPUUse && s.Workload == trimtab.HostItself && s.Value > 1 {
				t.Fatalf("%q: %+v", text, s)
			}
		}
	})
}
