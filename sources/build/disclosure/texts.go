package disclosure

import (
	"encoding/json"
	"strconv"
	"strings"
)

// Texts are values that were encrypted in files. A nil Texts has none. It is for one goroutine.
type Texts struct {
	whole map[string]bool
	parts []string
	left  int
}

const (
	// leastPart is how long a value has to be to be looked for within other texts.
	leastPart = 8
	// mostCompared is how many bytes are compared to find values in texts; after that, every text counts as one.
	mostCompared = 1 << 28
)

// NewTexts returns the Texts of values; nil for none. Those that are too short to be told from common text are left out.
func NewTexts(values []string) *Texts {
	t := &Texts{whole: map[string]bool{}, left: mostCompared}
	for _, value := range values {
		if len(strings.TrimSpace(value)) < leastText || t.whole[value] {
			continue
		}
		t.whole[value] = true
		if len(value) >= leastPart {
			t.parts = append(t.parts, value)
		}
	}
	if len(t.whole) == 0 {
		return nil
	}
	return t
}

// In reports whether content has one of the texts.
func (t *Texts) In(content any) bool {
	if t == nil {
		return false
	}
	switch content := content.(type) {
	case string:
		return t.inText(content)
	case map[string]any:
		for key, value := range content {
			if t.inText(key) || t.In(value) {
				return true
			}
		}
	case []any:
		for _, item := range content {
			if t.In(item) {
				return true
			}
		}
	case int64:
		return t.whole[strconv.FormatInt(content, 10)]
	case float64:
		text, err := json.Marshal(content)
		return err == nil && t.whole[string(text)]
	}
	return false
}

func (t *Texts) inText(text string) bool {
	if t.whole[text] {
		return true
	}
	for _, part := range t.parts {
		if len(part) > len(text) {
			continue
		}
		if t.left -= len(text); t.left < 0 || strings.Contains(text, part) {
			return true
		}
	}
	return false
}

// MarkFor returns the mark of an object: inName if its name has one of the texts, inFields if another field has, else
// nothing. A Secret is marked for its name alone: nobody shows its fields.
func (t *Texts) MarkFor(content any, inName, inFields string) string {
	fields, _ := content.(map[string]any)
	metadata, _ := fields["metadata"].(map[string]any)
	switch {
	case t == nil:
		return ""
	case t.In(metadata["name"]):
		return inName
	case fields["kind"] != "Secret" && t.In(content):
		return inFields
	default:
		return ""
	}
}
