package actuator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/knobtest"
)

// connections is a knob: a file that a proxy reads, with the most connections
// that it opens, or "max".
type connections struct {
	Path string `json:"path"`
}

func (c *connections) String() string   { return "connections of " + c.Path }
func (c *connections) Resource() string { return "connections" }

// Traits is empty: the knob does what every knob does, and no more.
func (c *connections) Traits() actuator.Traits { return actuator.Traits{} }

func (c *connections) Probe(ctx context.Context) error {
	_, err := c.Read(ctx)
	return err
}

// MayWrite asks for the right to write, and changes nothing.
func (c *connections) MayWrite(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	f, err := os.OpenFile(c.Path, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", c, err)
	}
	return f.Close()
}

func (c *connections) Read(ctx context.Context) (trimtab.Amount, error) {
	if err := ctx.Err(); err != nil {
		return trimtab.Amount{}, err
	}
	b, err := os.ReadFile(c.Path)
	if err != nil {
		return trimtab.Amount{}, fmt.Errorf("read %s: %w", c, err)
	}
	text := strings.TrimSpace(string(b))
	if text == "max" {
		return trimtab.Unlimited(), nil
	}
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return trimtab.Amount{}, trimtab.Invalidf("read %s: %w", c, err)
	}
	return trimtab.Units(float64(n)), nil
}

// Nearest rounds up to whole connections, so that a value reads back as it was
// written.
func (c *connections) Nearest(a trimtab.Amount) trimtab.Amount {
	if a.Unlimited {
		return a
	}
	return trimtab.Units(math.Ceil(a.Value - 1e-9))
}

// Write has one effect: the file must be there, and is not made.
func (c *connections) Write(ctx context.Context, a trimtab.Amount) error {
	if err := a.Validate(); err != nil {
		return err
	}
	if err := c.MayWrite(ctx); err != nil {
		return err
	}
	text := "max"
	if !a.Unlimited {
		text = strconv.FormatFloat(c.Nearest(a).Value, 'f', 0, 64)
	}
	if err := os.WriteFile(c.Path, []byte(text+"\n"), 0o600); err != nil {
		return fmt.Errorf("write %s: %w", c, err)
	}
	return nil
}

func (c *connections) Undo() []byte { b, _ := json.Marshal(c); return b }
func (c *connections) Close() error { return nil }

// reopenConnections makes the knob from the journal alone.
func reopenConnections(undo []byte) (actuator.Knob, error) {
	var c connections
	if err := json.Unmarshal(undo, &c); err != nil {
		return nil, trimtab.Invalidf("reopen connections: %w", err)
	}
	if !filepath.IsAbs(c.Path) {
		return nil, trimtab.Invalidf("reopen connections: path %.80q", c.Path)
	}
	return &c, nil
}

func TestConnectionsMeetTheContractOfKnobs(t *testing.T) {
	knobtest.Run(t, func(t *testing.T) knobtest.Fixture {
		path := filepath.Join(t.TempDir(), "connections")
		if err := os.WriteFile(path, []byte("max\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return knobtest.Fixture{
			Knob: &connections{path}, Reopen: reopenConnections,
			Least: 1, Most: 1000,
			Vanish: func() { _ = os.Remove(path) },
		}
	})
}

func ExampleKnob() {
	dir, err := os.MkdirTemp("", "knob")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "connections")
	if err := os.WriteFile(path, []byte("max\n"), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	var k actuator.Knob = &connections{path}
	before, _ := k.Read(ctx)
	err = k.Write(ctx, k.Nearest(trimtab.Units(99.2)))
	after, _ := k.Read(ctx)
	fmt.Println(before, after, err)
	// Output: unlimited 100 <nil>
}
