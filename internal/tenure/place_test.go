package tenure_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/flotilla-io/flotilla/internal/tenure"
)

func TestPlace(t *testing.T) {
	dir := t.TempDir()
	place := func(name string) string {
		t.Helper()
		got, err := tenure.Place(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	for _, name := range []string{"hub", "copy"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	hub := place("hub")
	if err := os.WriteFile(filepath.Join(dir, "hub", "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if again := place("hub"); again != hub {
		t.Errorf("what is in it changes the place: %s, %s", hub, again)
	}
	if got := place("copy"); got == hub {
		t.Errorf("a copy is in the same place: %s", got)
	}
	if err := os.Rename(filepath.Join(dir, "hub"), filepath.Join(dir, "before")); err != nil {
		t.Fatal(err)
	}
	if got := place("before"); got != hub {
		t.Errorf("it has moved by a new name: %s, %s", hub, got)
	}
	if _, err := tenure.Place(filepath.Join(dir, "none")); err == nil {
		t.Error("a folder that is not there has a place")
	}
}
