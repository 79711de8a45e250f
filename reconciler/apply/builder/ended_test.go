package builder

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/sources/build"
)

// TestDecryptionEndsWithItsContext: a build that has no time left says so, and nothing of its files, here and elsewhere.
func TestDecryptionEndsWithItsContext(t *testing.T) {
	files := map[string][]byte{"kustomization.yaml": []byte("resources: [f0.yaml]\nopenapi: {path: schema.json}\n"), "schema.json": []byte(`{"definitions": {}}`)}
	for i := range 20 {
		files[fmt.Sprintf("f%d.yaml", i)] = []byte(fixture(t, "secret.yaml"))
	}
	for where, by := range map[string]*build.Builder{"here": build.New(build.Limits{}), "elsewhere": build.NewApart(build.Limits{}, elsewhere{&bytes.Buffer{}})} {
		t.Run(where, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			over := errors.New("the time is over")
			opened := 0
			in := keyed(t, encrypted(), "key.agekey")
			in.Reveal = func(string) { // the first file has three values
				if opened++; opened == 4 {
					cancel(over)
				}
			}
			if where == "here" {
				in.Reveal = func(string) { cancel(over) }
			}
			_, err := FromFiles(ctx, by, build.NewTree(files), in)
			var is *loop.Error
			if !errors.Is(err, over) || errors.As(classifyBuild(in, err), &is) {
				t.Errorf("error %v", err)
			}
			if opened > 6 {
				t.Errorf("%d values were decrypted after the end", opened)
			}
		})
	}
}
