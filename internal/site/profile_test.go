package site

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/trimtab/trimtab/config"
)

func TestAProfileThatChangedIsReadAtTheNextReload(t *testing.T) {
	file := filepath.Join(t.TempDir(), "profile.csv")
	cfg, err := config.Parse("shop.yaml", []byte(fmt.Sprintf("pool: {cpu: 4}\nworkloads: [{name: shop, slo: {performance: 1}, fallback: {profile: %q}, knob: {cgroup: shop, cpu: {max: 2}}}]\n", file)))
	if err != nil {
		t.Fatal(err)
	}
	key := func(performance string) string {
		t.Helper()
		if err := os.WriteFile(file, []byte("allocation_per_load,performance\n0.003,0.5\n0.006,"+performance+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		parts, err := (&Site{}).learnPart(cfg)
		if err != nil {
			t.Fatal(err)
		}
		return parts[0].Key
	}
	first := key("0.9")
	if key("0.9") != first {
		t.Error("an unchanged profile would restart the analyzer")
	}
	if key("0.95") == first {
		t.Error("a changed profile would not be taken over")
	}
}
