package overlays_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/flotilla-io/flotilla/cmd/flotilla/lint/overlays"
)

// TestAFileThatBecomesALink while it is read leads nowhere else.
func TestAFileThatBecomesALink(t *testing.T) {
	const config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: VALUE}\n"
	root, elsewhere := t.TempDir(), filepath.Join(t.TempDir(), "secret.yaml")
	file := filepath.Join(root, "z.yaml")
	link, spare := filepath.Join(root, ".link"), filepath.Join(root, ".spare")
	if err := errors.Join(os.WriteFile(elsewhere, []byte(strings.Replace(config, "VALUE", "CANARY", 1)), 0o600), os.WriteFile(file, []byte(config), 0o600),
		os.WriteFile(filepath.Join(root, "kustomization.yaml"), []byte("resources: [z.yaml]\n"), 0o600), os.Symlink(elsewhere, link)); err != nil {
		t.Fatal(err)
	}
	for n := range 1000 { // between the list of the folder and the last of its files there is time
		if err := os.WriteFile(filepath.Join(root, fmt.Sprintf("a%d.txt", n)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	stop := make(chan struct{})
	var done sync.WaitGroup
	defer done.Wait()
	defer close(stop)
	done.Go(func() {
		for {
			select {
			case <-stop:
				return
			default: // what is not there for a moment is as good as any other moment
				_ = errors.Join(os.Rename(file, spare), os.Rename(link, file), os.Rename(file, link), os.Rename(spare, file))
			}
		}
	})
	for range 100 {
		all, err := overlays.Standing(t.Context(), root)
		if err != nil {
			continue
		}
		for _, a := range all {
			for _, obj := range a.Objects {
				if text, _ := json.Marshal(obj); strings.Contains(string(text), "CANARY") {
					t.Fatalf("it is built with what is elsewhere: %s", text)
				}
			}
		}
	}
}
