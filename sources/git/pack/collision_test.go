package pack_test

import (
	"bytes"
	"crypto"
	"crypto/sha1" //nolint:gosec // it is about what is wrong with it
	"encoding/base64"
	"testing"

	"github.com/go-git/go-git/v5/plumbing/hash"
)

// The first blocks of the two files of https://shattered.io, which have one SHA-1: what both begin with, and how each goes on.
const (
	shattered = "JVBERi0xLjMKJeLjz9MKCgoxIDAgb2JqCjw8L1dpZHRoIDIgMCBSL0hlaWdodCAzIDAgUi9UeXBlIDQgMCBSL1N1YnR5cGUgNSAwIFIvRmlsdGVyIDYg" +
		"MCBSL0NvbG9yU3BhY2UgNyAwIFIvTGVuZ3RoIDggMCBSL0JpdHNQZXJDb21wb25lbnQgOD4+CnN0cmVhbQr/2P/+ACRTSEEtMSBpcyBkZWFkISEhISGF" +
		"L+wJIzl1nDmxocY8TJfh//4B"
	one = "c0bckWa2fhGPApq2IbJWD/nKZ8yox/hbqEx5AwwrPeIY+G2zqQkB1d9FwU8m/t+z3DjpasIv571yjw5FvOBG0jxXD+sUE5i7VS71oKgr4zH+pIA3uLXX" +
		"Hw4zLt+TrDUA603cDezBqGR5DHgsdiFWYN0wl5HQa9CvP5jNpLxGKbE="
	other = "f0bck6a2fgE7ApqqHbJWC0XKZ9aIx/hLjEx5H+ArPfYU+G2xaQkBxWtFwVMK/t+3YDjpcnIv561yjw5JBOBGwjBXD+nUE5ir4S71vJQr4zVCpIAtmLXX" +
		"DyozLsN/rDUU503cDyzBqHTNDHgwWiFWZGEwl4lga9C/P5jNqARGKaE="
)

// TestCollisionsAreSeen: two contents that were made to have one SHA-1 have not the name of an object that anybody else gives them, so that
// neither can stand in for the other. The library that reads packs sees to that, by how it hashes.
func TestCollisionsAreSeen(t *testing.T) {
	var plain, named [][]byte
	for _, rest := range []string{one, other} {
		content, err := base64.StdEncoding.DecodeString(shattered)
		if err != nil {
			t.Fatal(err)
		}
		more, err := base64.StdEncoding.DecodeString(rest)
		if err != nil {
			t.Fatal(err)
		}
		content = append(content, more...)
		sum := sha1.Sum(content) //nolint:gosec // as above
		h := hash.New(crypto.SHA1)
		h.Write(content)
		plain, named = append(plain, sum[:]), append(named, h.Sum(nil))
	}
	if !bytes.Equal(plain[0], plain[1]) {
		t.Fatal("the files have not one SHA-1")
	}
	if bytes.Equal(named[0], plain[0]) || bytes.Equal(named[1], plain[1]) || bytes.Equal(named[0], named[1]) {
		t.Errorf("they are named %x and %x, as plain SHA-1 has it", named[0], named[1])
	}
}
