// Package secrets keeps the values of Secrets out of what people are shown.
//
// In go values, and texts that they came out as; out come texts and errors without them. Nothing is
// written down anywhere.
package secrets

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/flotilla-io/flotilla/internal/loop"
)

// Values are what no text may show. The zero value is none. It is safe for use by several goroutines.
type Values struct {
	mu     sync.Mutex
	values map[string]bool // what is hidden wherever it stands, in all its forms
	short  map[string]bool // what is hidden where it is quoted as a value
	spared map[string]bool // texts that stay as they are
	doubts *Values         // what may be a value, as long as it is not known
}

const (
	// leastSecret is how long a value is at least that is left out of all texts: what is shorter stands
	// everywhere, and guards nothing. It is left out where it stands as a value, between quotes.
	leastSecret = 4
	// mostForms is how long a value is at most, in bytes, that is known in other forms, too.
	mostForms = 8 << 10
	// hidden stands where a secret was.
	hidden = "***"
)

// Keep adds a value, and its lines, as texts often show only one, each as it is and as it is quoted in texts and
// JSON. Lines are also known joined, and with one space for several, as they are in texts of one line.
func (s *Values) Keep(value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.values == nil {
		s.values, s.short = map[string]bool{}, map[string]bool{}
	}
	for _, line := range append(strings.Split(value, "\n"), value, strings.ReplaceAll(value, "\n", "")) {
		s.keep(strings.TrimSpace(line))
		s.keep(strings.Join(strings.Fields(line), " "))
	}
}

func (s *Values) keep(line string) {
	switch {
	case line == "" || s.values[line]:
	case len(line) < leastSecret:
		s.short[line] = true
	default:
		for _, form := range forms(line[:min(len(line), mostForms)]) { // also of the beginning alone: texts are cut off
			s.values[form] = true
		}
		s.values[line] = true
	}
}

// Spare keeps a text as it is that everybody may see, such as what an object is called: a value that is a part of it
// shows nothing there. Elsewhere the value is hidden.
func (s *Values) Spare(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spared == nil {
		s.spared = map[string]bool{}
	}
	s.spared[text] = true
}

// Adopt adds the values of others.
func (s *Values) Adopt(of *Values) {
	of.mu.Lock()
	values, short := maps.Clone(of.values), maps.Clone(of.short)
	of.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.values == nil {
		s.values, s.short = map[string]bool{}, map[string]bool{}
	}
	maps.Copy(s.values, values)
	maps.Copy(s.short, short)
}

// Doubt has these texts hidden, too, until it is called again.
func (s *Values) Doubt(texts []string) {
	var doubts *Values
	for _, text := range texts {
		if doubts == nil {
			doubts = &Values{}
		}
		doubts.Keep(text)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doubts = doubts
}

// None reports whether there are no values.
func (s *Values) None() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.values)+len(s.short) == 0
}

// forms are a value as it may stand in a text: as it is, within JSON, within quotes, within JSON that is quoted,
// in an address, and encoded as the data of a Secret is.
func forms(value string) []string {
	out := []string{value, url.PathEscape(value), base64.StdEncoding.EncodeToString([]byte(value))}
	for _, form := range []string{value, inJSON(value, true), inJSON(value, false)} {
		quoted, ascii := strconv.Quote(form), strconv.QuoteToASCII(form)
		out = append(out, form, quoted[1:len(quoted)-1], ascii[1:len(ascii)-1])
	}
	return out
}

func inJSON(value string, escapeHTML bool) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(escapeHTML)
	_ = encoder.Encode(value) // a string always has a form
	text := strings.TrimSuffix(out.String(), "\n")
	return text[1 : len(text)-1]
}

// Hide returns a text without the values. Plain are parts of it that are known to everybody, such as
// a revision: they stay as they are.
func (s *Values) Hide(text string, plain ...string) string {
	if len(plain) > 0 {
		if plain[0] == "" {
			return s.Hide(text, plain[1:]...)
		}
		parts := strings.Split(text, plain[0])
		for n := range parts {
			parts[n] = s.Hide(parts[n], plain[1:]...)
		}
		return strings.Join(parts, plain[0])
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.doubts != nil {
		text = s.doubts.Hide(text)
	}
	values := make([]string, 0, len(s.values))
	for value := range s.values {
		if strings.Contains(text, value) {
			values = append(values, value)
		}
	}
	slices.SortFunc(values, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) }) // one may hold another
	spared := slices.DeleteFunc(slices.Sorted(maps.Keys(s.spared)), func(of string) bool { return !strings.Contains(text, of) })
	slices.SortStableFunc(spared, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	// What is no part of them goes first, also where it reaches into one.
	var parts []string
	for _, value := range values {
		if slices.ContainsFunc(spared, func(of string) bool { return strings.Contains(of, value) }) {
			parts = append(parts, value)
			continue
		}
		text = strings.ReplaceAll(text, value, hidden)
	}
	return s.hideCut(outside(text, spared, func(text string) string {
		for _, value := range parts {
			text = strings.ReplaceAll(text, value, hidden)
		}
		for value := range s.short {
			text = hideQuoted(text, value)
		}
		return text
	}))
}

// outside returns a text with hide done to what is not one of these.
func outside(text string, these []string, hide func(string) string) string {
	if len(these) == 0 {
		return hide(text)
	}
	parts := strings.Split(text, these[0])
	for n := range parts {
		parts[n] = outside(parts[n], these[1:], hide)
	}
	return strings.Join(parts, these[0])
}

// cut stands at the end of a text that was too long.
const cut = "…"

// hideCut leaves out the beginning of a value at which a text was cut off.
func (s *Values) hideCut(text string) string {
	parts := strings.Split(text, cut)
	for n, part := range parts[:len(parts)-1] {
		begun := 0
		for value := range s.values {
			begun = max(begun, overlap(part, value[:min(len(value), mostForms)]))
		}
		if begun >= leastSecret {
			parts[n] = part[:len(part)-begun] + hidden
		}
	}
	return strings.Join(parts, cut)
}

// overlap is how many bytes at the end of a text are the beginning of a value. Both may repeat themselves, so that it takes
// care not to compare anything twice.
func overlap(text, value string) int {
	// borders has for each length of a beginning of the value how much of its end begins the value, too.
	borders, length := make([]int, len(value)+1), 0
	for at := 1; at < len(value); at++ {
		for length > 0 && value[at] != value[length] {
			length = borders[length]
		}
		if value[at] == value[length] {
			length++
		}
		borders[at+1] = length
	}
	length = 0
	for _, b := range []byte(text[max(0, len(text)-len(value)):]) {
		for length > 0 && (length == len(value) || b != value[length]) {
			length = borders[length]
		}
		if b == value[length] {
			length++
		}
	}
	return length
}

// hideQuoted leaves a short value out where nothing else stands between quotes, or where it is marked as a
// value.
func hideQuoted(text, value string) string {
	if !strings.Contains(text, value) {
		return text
	}
	for _, around := range [][2]string{{`"`, `"`}, {`\"`, `\"`}, {"value: ", ":"}} {
		text = strings.ReplaceAll(text, around[0]+value+around[1], around[0]+hidden+around[1])
	}
	return text
}

// Clean returns an error of the same class and reason, as loop.As finds them, whose text shows no
// value; plain is what Hide leaves. What it wraps then is lost.
func (s *Values) Clean(err error, reason string, plain ...string) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	clean := s.Hide(text, plain...)
	if clean == text {
		return err
	}
	out := *loop.As(err, reason)
	out.Err = errors.New(clean)
	return &out
}
