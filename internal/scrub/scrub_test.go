package scrub_test

import (
	"testing"

	"github.com/trimtab/trimtab/internal/scrub"
)

func TestScrubbingLeavesNoSecretAndNoLessThanTheRest(t *testing.T) {
	s := scrub.New([]string{"MY_PASSWORD=hunter2hunter2", "DSN=postgres://u:inner-word@h/db", "HOME=/root/home"})
	for in, want := range map[string]string{
		"nats://anna:x@y@host:4222/a b":              "nats://<secret>@host:4222/a b",
		`{"token": "abc", "n": 1}`:                   `{"token": "<secret>", "n": 1}`,
		`{"msg": "{\\"api_key\\":\\"abc\\"}"}`:       `{"msg": "{\\"api_key\\":\\"<secret>\\"}"}`,
		"password=abc&x=1":                           "password=<secret>&x=1",
		"token_file: /etc/t\ncredentials_file: /c\n": "token_file: /etc/t\ncredentials_file: /c\n",
		"say hunter2hunter2 or inner-word":           "say <secret> or <secret>",
		"in /root/home":                              "in /root/home",
		"sent Bearer abc.def to it":                  "sent Bearer <secret> to it",
		"-----BEGIN EC PRIVATE KEY-----\nMHc\n-----END EC PRIVATE KEY-----\nrest": "-----BEGIN EC PRIVATE KEY-----<secret>\nrest",
		"http://127.0.0.1:9600/api":    "http://127.0.0.1:9600/api",
		"trimtab_web_requests_total 3": "trimtab_web_requests_total 3",
	} {
		if got := string(s.Bytes([]byte(in))); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
