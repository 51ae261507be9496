package kube

import (
	"strings"
	"testing"
	"time"
)

const aSummary = `{"node":{"nodeName":"n1"},"pods":[{"podRef":{"name":"a","namespace":"shop","uid":"u1"},"containers":[
{"name":"app","memory":{"time":"2026-11-30T03:00:00Z","usageBytes":100,"workingSetBytes":80,"rssBytes":60,"psi":{"some":{"total":1,"avg10":25},"full":{"avg10":3}}},"swap":{"time":"2026-11-30T03:00:00Z","swapUsageBytes":7}},
{"name":"new","memory":{"time":"2026-11-30T03:00:00Z","usageBytes":0,"workingSetBytes":80,"rssBytes":0},"swap":{"swapUsageBytes":0}},
{"name":"untold","memory":{"time":null}},{"name":"bad","memory":{"time":"2026-11-30T03:00:00Z","workingSetBytes":-4}}]}]}`

func TestAKubeletsSummaryIsReadAndWhatIsNotThereIsMissing(t *testing.T) {
	got := map[string]Usage{}
	if err := readSummary(strings.NewReader(aSummary), func(k UsageKey, u Usage) {
		if k.Namespace != "shop" || k.Pod != "a" || k.UID != "u1" {
			t.Errorf("%+v", k)
		}
		got[k.Container] = u
	}); err != nil {
		t.Fatal(err)
	}
	app := got["app"]
	if len(got) != 3 || *app.WorkingSet != 80 || *app.Usage != 100 || *app.Anonymous != 60 || *app.Swap != 7 || *app.PSI != 0.25 || !app.Time.Equal(time.Date(2026, 11, 30, 3, 0, 0, 0, time.UTC)) {
		t.Errorf("%+v", got)
	}
	if v := got["new"]; *v.WorkingSet != 80 || v.Usage != nil || v.Anonymous != nil || *v.Swap != 0 {
		t.Errorf("what the kubelet writes as 0 since it does not know it: %+v", v)
	}
	if bad := got["bad"]; bad.WorkingSet != nil || bad.PSI != nil {
		t.Errorf("a negative amount is read: %+v", bad)
	}
}

func FuzzSummary(f *testing.F) {
	f.Add(aSummary)
	f.Add(`{"pods":[{"containers":[{"memory":{"time":"2026-11-30T03:00:00Z","workingSetBytes":1e300,"psi":{"some":{"avg10":1e9}}}}]}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		_ = readSummary(strings.NewReader(text), func(_ UsageKey, u Usage) { // an error is as good as any
			for _, v := range []*float64{u.WorkingSet, u.Usage, u.Anonymous, u.Swap, u.PSI} {
				if v != nil && !(*v >= 0 && *v < 1<<62) || u.PSI != nil && *u.PSI > 1 {
					t.Errorf("%+v", u)
				}
			}
		})
	})
}

func TestANodeNamesItsKubelet(t *testing.T) {
	var n Node
	n.Name = "n1"
	if address, _ := n.kubelet(); address != "" {
		t.Errorf("without an address: %q", address)
	}
	n.Status.DaemonEndpoints.Kubelet.Port = 10250
	for _, a := range [][2]string{{"InternalIP", "fd00::7"}, {"InternalIP", "10.0.0.7"}, {"Hostname", "N1.local"}} {
		n.Status.Addresses = append(n.Status.Addresses, struct {
			Type    string `json:"type"`
			Address string `json:"address"`
		}{a[0], a[1]})
	}
	if address, name := n.kubelet(); address != "[fd00::7]:10250" || name != "n1.local" {
		t.Errorf("%q, %q", address, name)
	}
}
