package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// usageFile writes three days of a reading every minute: 1 GiB, and 2 GiB at noon.
func usageFile(t *testing.T, name, head, line, between, tail string) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(head)
	for m := range 3 * 24 * 60 {
		use := 1 << 30
		if m/60%24 == 12 {
			use = 2 << 30
		}
		if m > 0 {
			b.WriteString(between)
		}
		fmt.Fprintf(&b, line, 1_700_000_000+60*m, use)
	}
	b.WriteString(tail)
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func playUsage(t *testing.T, args ...string) usageAnswer {
	t.Helper()
	var out, errs bytes.Buffer
	if code := Main(t.Context(), append([]string{"replay", "-o", "json"}, args...), &out, &errs); code != 0 {
		t.Fatal(errs.String())
	}
	var a usageAnswer
	if err := json.Unmarshal(out.Bytes(), &a); err != nil {
		t.Fatal(err)
	}
	return a
}

func TestRecordedUsageIsPlayedUnderVPAAndTrimtab(t *testing.T) {
	csv := usageFile(t, "memory.csv", "time,instance,bytes,limit\n", "%d,shop-0,%d,4294967296", "\n", "\n")
	prom := usageFile(t, "memory.json", `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"namespace":"shop","pod":"shop-0","container":"web"},"values":[`, `[%d,"%d"]`, ",", `]}]}}`)
	for path, name := range map[string]string{csv: "shop-0", prom: "shop/shop-0/web"} {
		a := playUsage(t, path, "--usage-of", "memory", "--limit", "4", "--policy", "vpa,trimtab,limit,thumb")
		if len(a.Instances) != 1 || a.Instances[0].Name != name || len(a.Total) != 4 || a.Unit != "bytes" {
			t.Fatalf("%s: %+v", path, a)
		}
		// After the kill of the first, unknown peak trimtab may meet the next one a day later once more.
		vpa, ours, asIs := a.Total[0], a.Total[1], a.Total[2]
		if asIs.Limit != 4<<30 || asIs.Overruns != 0 || vpa.Overruns != 0 || ours.Overruns > 1 || !(ours.Over < vpa.Over && vpa.Over < asIs.Over) {
			t.Errorf("%s: vpa %+v, trimtab %+v, limit %+v", path, vpa, ours, asIs)
		}
	}
	a := playUsage(t, usageFile(t, "cores.csv", "", "%d,%d", "\n", "\n"), "--usage-of", "cpu")
	if a.Unit != "cores" || len(a.Total) != 6 || a.Total[4].Rule != "limit" || a.Total[4].Readings != 0 {
		t.Errorf("%+v", a)
	}
}

func TestUsageThatCannotBeReadIsRefusedWithItsPlace(t *testing.T) {
	for text, want := range map[string]string{"1,2\nx,3\n": "line 2", "time,use\n1,NaN\n": "line 2", "1,a,2,3,4\n": "line 1", "": "there is none"} {
		path := filepath.Join(t.TempDir(), "x.csv")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		if code := Main(t.Context(), []string{"replay", path, "--usage-of", "memory"}, &out, &errs); code == 0 || !strings.Contains(errs.String(), want) || !strings.Contains(errs.String(), "hint: ") {
			t.Errorf("%q: %s", text, errs.String())
		}
	}
	var out, errs bytes.Buffer
	if code := Main(t.Context(), []string{"replay", "x.csv", "--usage-of", "memory", "--policy", "vap"}, &out, &errs); code == 0 || !strings.Contains(errs.String(), "vpa") {
		t.Error(errs.String())
	}
}

func FuzzUsage(f *testing.F) {
	f.Add("1,2\n2,shop,3\n3,shop,4,5\n", false)
	f.Add(`{"data":{"result":[{"metric":{"pod":"a"},"values":[[1,"2"],[2,"NaN"]]}]}}`, true)
	f.Add(`[{"values":[[1,"2"]]}]`, true)
	f.Fuzz(func(t *testing.T, text string, isJSON bool) {
		u := usages{}
		read := u.csv
		if isJSON {
			read = u.prometheus
		}
		if err := read(strings.NewReader(text)); err != nil {
			return
		}
		for name, s := range u {
			for _, x := range s.Readings {
				if !usable(x.Use) || s.Name != name {
					t.Errorf("%+v", s)
				}
			}
		}
	})
}
