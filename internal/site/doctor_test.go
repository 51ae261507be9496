package site

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trimtab/trimtab/actuator"
)

// Found: a service in a group of the cpu hierarchy alone was never recommended a
// limit, and nothing said why.
func TestTheDoctorSaysWhenTheUseOfAGroupCannotBeRead(t *testing.T) {
	root := filepath.Join(t.TempDir(), "cpu")
	beside := filepath.Join(filepath.Dir(root), "cpuacct")
	if err := errors.Join(os.MkdirAll(filepath.Join(root, "shop"), 0o755), os.MkdirAll(filepath.Join(beside, "other"), 0o755),
		os.WriteFile(filepath.Join(beside, "other", "cpuacct.usage"), []byte("1\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	v := &visit{}
	v.accounted(actuator.Location{Root: root, Path: "other"}, "other")
	v.accounted(actuator.Location{Root: beside, Path: "shop"}, "shop")
	if len(v.found) > 0 {
		t.Errorf("what can be read: %v", v.found)
	}
	v.accounted(actuator.Location{Root: root, Path: "shop"}, "shop")
	if len(v.found) != 1 || v.found[0].Level != FoundNote || !strings.Contains(v.found[0].Hint, "make the same group below "+beside) {
		t.Errorf("%v", v.found)
	}
}
