package config_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/trimtab/trimtab/config"
)

// keysBelow calls f with the path of each key of a section, and of those in it.
func keysBelow(t reflect.Type, path []string, f func(path []string)) {
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		if name == "" || name == "-" || !field.IsExported() {
			continue
		}
		below := slices.Concat(path, []string{name})
		f(below)
		inner := field.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct && len(below) < 6 {
			keysBelow(inner, below, f)
		}
	}
}

// within writes a key as the only one of the sections that hold it; a workload's below
// an entry of the list.
func within(path []string) (text string, col int) {
	if path[0] == "workloads" {
		text, path = "workloads: [{", path[1:]
	}
	for _, section := range path[:len(path)-1] {
		text += section + ": {"
	}
	col = len(text) + 1
	text += path[len(path)-1] + ": x"
	return text + strings.Repeat("}", strings.Count(text, "{")) + strings.Repeat("]", strings.Count(text, "[")) + "\n", col
}

// TestU4AKeyThatIsMisspeltIsAnsweredAtItsPlaceWithTheNearest is the half of promise U4
// on keys: each key of the file, with two of its letters swapped.
func TestU4AKeyThatIsMisspeltIsAnsweredAtItsPlaceWithTheNearest(t *testing.T) {
	tried := 0
	misspelt := func(path []string) {
		name := path[len(path)-1]
		at := len(name) - 2
		if len(name) < 4 || name[at] == name[at+1] {
			return
		}
		wrong := slices.Concat(path[:len(path)-1], []string{name[:at] + name[at+1:] + name[at:at+1]})
		text, col := within(wrong)
		list := mistakesOf("f.yaml", text)
		want, hint := fmt.Sprintf("unknown key %q", wrong[len(wrong)-1]), fmt.Sprintf("did you mean %q?", name)
		tried++
		for _, e := range list {
			if e.Line == 1 && e.Col == col && strings.HasPrefix(e.Message, want) && e.Hint == hint {
				return
			}
		}
		t.Errorf("%s: %v, want column %d: %s, %s", text, list, col, want, hint)
	}
	keysBelow(reflect.TypeFor[config.Config](), nil, misspelt)
	keysBelow(reflect.TypeFor[config.Workload](), []string{"workloads"}, misspelt)
	if tried < 150 {
		t.Errorf("only %d keys were tried", tried)
	}
}

// TestU4AFileThatIsNamedAndIsNotThereIsAMistakeAtItsPlace has each kind of file.
func TestU4AFileThatIsNamedAndIsNotThereIsAMistakeAtItsPlace(t *testing.T) {
	for text, place := range map[string]string{
		"alertmanager: {token_file: gone}\n":                                                      "1:28",
		"prometheus: {url: \"https://p:9090\", bearer_token_file: gone}\n":                        "1:56",
		"prometheus:\n  url: https://p:9090\n  tls_config: {ca_file: gone}\n":                     "3:25",
		"nats: {url: \"tls://n:4222\", tls: {ca_file: gone}}\n":                                   "1:44",
		"prometheus:\n  url: https://p:9090\n  basic_auth: {username: me, password_file: gone}\n": "3:45",
		"pool: {cpu: 8}\nworkloads:\n  - name: a\n    mode: off\n    slo: {performance: 1}\n    knob: {cgroup: a, cpu: {max: 2}}\n    fallback: {profile: gone.csv}\n": "7:25",
	} {
		file := filepath.Join(t.TempDir(), "trimtab.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := config.Check(file)
		var list config.Errors
		if !errors.As(err, &list) || len(list) != 1 || !strings.HasPrefix(list[0].Error(), file+":"+place+": ") || !strings.Contains(list[0].Message, "not there") || list[0].Hint == "" {
			t.Errorf("%s: %v, want one mistake at %s", text, err, place)
		}
	}
}
