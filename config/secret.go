package config

import (
	"fmt"
	"io"
	"log/slog"
)

// hidden is what is shown in place of a secret.
const hidden = "<secret>"

// Secret is a text that no form of printing shows. Convert with string(s)
// where it is used, and nowhere else.
type Secret string

// String returns "<secret>", or "" when there is none.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return hidden
}

// Format hides the secret from every verb of package fmt.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// MarshalText hides the secret from JSON.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalYAML hides the secret from YAML.
func (s Secret) MarshalYAML() (any, error) { return s.String(), nil }

// LogValue hides the secret from slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// Format prints the configuration without its secrets, for every verb: the
// HTTP client's own secrets would be printed by %v.
func (c Config) Format(f fmt.State, _ rune) { _, _ = f.Write(c.Redacted()) }

// MarshalJSON refuses: show [Config.Redacted].
func (c Config) MarshalJSON() ([]byte, error) {
	return nil, fmt.Errorf("marshal configuration: use Redacted")
}

// Format prints the section without its secrets, for every verb.
func (p Prometheus) Format(f fmt.State, _ rune) { _, _ = f.Write(redacted(p)) }

// LogValue hides secrets from slog.
func (p Prometheus) LogValue() slog.Value { return slog.StringValue(string(redacted(p))) }

// LogValue hides secrets from slog.
func (c Config) LogValue() slog.Value { return slog.StringValue(string(c.Redacted())) }
