package telemetry_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/flotilla-io/flotilla/internal/telemetry"
)

// FuzzLog: whatever stands in a value, a fault or a message that others wrote, it is one entry on one line, of text that cannot do
// anything to a terminal.
func FuzzLog(f *testing.F) {
	for _, text := range []string{
		"plain", "two\nlines", "level=ERROR msg=forged", "\r\x1b[2J\x1b]0;owned\a", "web\u202egpj.exe \u2066x\u2069", "\xff\xfe", "\u2028\u2029\x00\x7f\u009b31m", "\U0001F600 \U000E0041", `"} {"msg":"forged"`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, format := range []string{"text", "json"} {
			var out, screen bytes.Buffer
			options := &telemetry.LogOptions{Format: format, Screen: &screen}
			log, err := options.Start(&out)
			if err != nil {
				t.Fatal(err)
			}
			log.Info("A webhook was refused", "reason", text, "of", fmt.Stringer(named(text)))
			log.Error(errors.New(text), "a webhook was not heard", "names", []string{text})
			log.WithName("receiver").Info(text, "revision", text)
			for name, got := range map[string]string{format: out.String(), "screen": screen.String()} {
				if !utf8.ValidString(got) || strings.ContainsFunc(strings.ReplaceAll(got, "\n", ""), dangerous) {
					t.Errorf("%s: %q", name, got)
				}
			}
			lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
			if len(lines) != 3 {
				t.Errorf("%s: three entries are %d lines: %q", format, len(lines), lines)
			}
			for _, line := range lines {
				var entry map[string]any
				if format == "json" && json.Unmarshal([]byte(line), &entry) != nil {
					t.Errorf("no JSON: %s", line)
				}
				if format == "text" && strings.Count(line, " level=")+strings.Count(line, " msg=") < 2 {
					t.Errorf("no entry: %s", line)
				}
			}
		}
	})
}

// dangerous reports whether a character does something to a terminal, or to the order in which others are read.
func dangerous(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
}

type named string

func (n named) String() string { return string(n) }
