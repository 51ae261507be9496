package cli_test

import (
	"strings"
	"testing"

	"github.com/trimtab/trimtab/internal/cli"
)

func TestTheHintForACommandThatIsNotUnderstoodNamesItsHelp(t *testing.T) {
	var c struct {
		Serve struct {
			To string `required:""`
		} `cmd:""`
	}
	p := cli.Program{Name: "tool", Grammar: &c}
	for args, want := range map[string]string{"serve": "tool serve --help", "serve --no": "tool serve --help", "none": "tool --help"} {
		var out, errs strings.Builder
		if code := p.Main(t.Context(), strings.Fields(args), &out, &errs); code != 1 || !strings.Contains(errs.String(), "hint: "+want) {
			t.Errorf("%s: code %d, %s", args, code, errs.String())
		}
	}
}
