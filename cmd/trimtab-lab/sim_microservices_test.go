package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/trimtab/trimtab/internal/cli"
	"github.com/trimtab/trimtab/lab/microservices"
)

// micro is what `trimtab-lab sim microservices` prints.
func micro(t *testing.T, args ...string) string {
	t.Helper()
	var out, said strings.Builder
	if code := Main(t.Context(), append([]string{"sim", "microservices"}, args...), &out, &said); code != 0 {
		t.Fatalf("%v: exit code %d, %s", args, code, said.String())
	}
	return out.String()
}

func TestMicroservicesRunEveryPolicyOnceWhereverAllStands(t *testing.T) {
	t.Parallel()
	var answer microAnswer
	if err := json.Unmarshal([]byte(micro(t, "--rounds=1", "--seeds=1", "--policy=evoalg,all,evoalg", "-o", "json")), &answer); err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range answer.Policies {
		got = append(got, answer.Policies[i].Policy)
	}
	want := microservices.PolicyNames()
	if got[0] != microservices.EvoAlg || len(got) != len(want) {
		t.Fatalf("ran %v", got)
	}
	for _, name := range want {
		if !slices.Contains(got, name) {
			t.Errorf("%s is missing among %v", name, got)
		}
	}
}

func TestTheStandardErrorOfOneSimulatedSeedIsUnknown(t *testing.T) {
	t.Parallel()
	for seeds, unknown := range map[string]bool{"1": true, "2": false} {
		said := micro(t, "--rounds=2", "--seeds="+seeds, "--policy=resource-fair", "-o", "json")
		if strings.Contains(said, `"stderr"`) == unknown {
			t.Errorf("%s seeds:\n%s", seeds, said)
		}
		var answer microAnswer
		if err := json.Unmarshal([]byte(said), &answer); err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		answer.text(&text)
		_, row, _ := strings.Cut(text.String(), "resource-fair")
		cells := strings.Fields(row) // the time of a decision is two
		if len(cells) < 3 || (cells[len(cells)-3] == "–") != unknown {
			t.Errorf("%s seeds:\n%s", seeds, text.String())
		}
	}
}

// asks is a context that ends when it was asked so often.
type asks struct {
	context.Context
	left int
}

func (a *asks) Err() error {
	if a.left--; a.left < 0 {
		return context.Canceled
	}
	return nil
}

func TestAnInterruptEndsARunOfMicroservicesBetweenTwoRounds(t *testing.T) {
	t.Parallel()
	for rounds, want := range map[int]error{1: nil, 1000: context.Canceled} {
		c := simMicroservicesCmd{simFlags: simFlags{Policy: cli.Names{"resource-fair"}, Rounds: rounds, runFlags: runFlags{Seeds: 1, Threads: 1, Output: "json"}},
			CPUs: 160, Rate: 1000, Speed: 1, Scaling: 1}
		if err := c.Run(&asks{t.Context(), 20}, terminal{out: io.Discard, err: io.Discard}); !errors.Is(err, want) {
			t.Errorf("%d rounds: %v, want %v", rounds, err, want)
		}
	}
}
