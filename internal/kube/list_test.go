package kube

import (
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// items reads a list, and returns what it was given.
func items(t *testing.T, text string) (all []string, version string, err error) {
	t.Helper()
	meta, err := readList(strings.NewReader(text), func(b []byte) { all = append(all, string(b)) })
	return all, meta.ResourceVersion, err
}

func TestAListIsReadOneObjectAtATime(t *testing.T) {
	for text, want := range map[string][]string{
		`{"kind":"PodList","metadata":{"resourceVersion":"7","new":{}},"items":[{"a":[1]},{}],"more":[[]]}`: {`{"a":[1]}`, `{}`},
		`{"items":[],"metadata":{"resourceVersion":"7"}}`:                                                   nil,
		`{"metadata":{"resourceVersion":"7"},"items":null}`:                                                 nil,
	} {
		if got, version, err := items(t, text); err != nil || version != "7" || !slices.Equal(got, want) {
			t.Errorf("%s: %q of version %q, %v; want %q", text, got, version, err, want)
		}
	}
}

func TestAnAnswerThatIsCutOffOrNoListIsAnErrorAndNoEmptyList(t *testing.T) {
	whole := `{"kind":"PodList","metadata":{"resourceVersion":"7"},"items":[{"a":1},{"b":2}]}`
	for cut := range len(whole) {
		if _, _, err := items(t, whole[:cut]); err == nil {
			t.Errorf("%s was taken for a list", whole[:cut])
		}
	}
	for _, text := range []string{`[]`, `null`, `7`, `{}`, `{"items":[]}`, `{"metadata":{"resourceVersion":"7"}}`,
		`{"metadata":{"resourceVersion":"7"},"items":{}}`, `{"metadata":{"resourceVersion":"7"},"items":7}`, `{"metadata":7,"items":[]}`} {
		if _, _, err := items(t, text); err == nil {
			t.Errorf("%s was taken for a list", text)
		}
	}
}

func FuzzReadList(f *testing.F) {
	f.Add(`{"metadata":{"resourceVersion":"7"},"items":[{"a":1}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		pods := newTable[Pod](pods(), slog.New(slog.DiscardHandler), &atomic.Uint64{}, nil)
		_, _ = readList(strings.NewReader(text), func(b []byte) { pods.read(b) }) // nothing may crash it
	})
}

func TestAnObjectThatOnlyGotANewVersionIsNoChange(t *testing.T) {
	var changes atomic.Uint64
	nodes := newTable[Node](nodes(), slog.New(slog.DiscardHandler), &changes, nil)
	node := func(version, cpu string) *Node {
		return nodes.read([]byte(`{"metadata":{"name":"n","uid":"u","resourceVersion":"` + version + `"},"status":{"allocatable":{"cpu":"` + cpu + `"}}}`))
	}
	for _, step := range []struct {
		node *Node
		want uint64
	}{{node("1", "4"), 1}, {node("2", "4"), 1}, {node("3", "8"), 2}, {node("2", "4"), 2}} {
		nodes.put(step.node)
		if got := changes.Load(); got != step.want {
			t.Errorf("after version %s there are %d changes, want %d", step.node.ResourceVersion, got, step.want)
		}
	}
	if got := nodes.get("", "n").ResourceVersion; got != "3" {
		t.Errorf("version %s is kept, want 3", got)
	}
}
