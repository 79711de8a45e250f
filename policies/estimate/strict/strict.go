// Package strict reads JSON that anybody may have written.
//
// In go a text, how long it may be, and what it is to be read into; out comes why it is not that. It reads and writes
// nothing.
package strict

import (
	"fmt"

	"sigs.k8s.io/json"
)

// Read reads the text, of so many bytes at most, into a pointer to a struct. It errs where something else stands in it, or
// follows it, where fields are named twice or in other letters: what is stored then is of no use.
func Read(text []byte, most int, into any) error {
	if len(text) > most {
		return fmt.Errorf("it has %d bytes, and may have %d", len(text), most)
	}
	doubts, err := json.UnmarshalStrict(text, into)
	if err != nil {
		return err
	}
	if len(doubts) > 0 {
		return doubts[0]
	}
	return nil
}
