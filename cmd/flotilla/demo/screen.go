package demo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// screen draws views: on a terminal over the last one, anywhere else as lines with what is
// new.
type screen struct {
	out      io.Writer
	terminal bool
	height   int
	last     View
}

func (s *screen) draw(view View, elapsed time.Duration) {
	if !s.terminal {
		for _, line := range view.Lines(s.last, elapsed) {
			_, _ = fmt.Fprintln(s.out, line)
		}
		if view.Finished() {
			_, _ = fmt.Fprint(s.out, "\n"+view.Table(elapsed))
		}
		s.last = view
		return
	}
	table := view.Table(elapsed)
	if s.height > 0 {
		// Up to the first line, and clear from there to the end.
		_, _ = fmt.Fprintf(s.out, "\x1b[%dA\x1b[J", s.height)
	}
	_, _ = fmt.Fprint(s.out, table)
	s.height = strings.Count(table, "\n")
}

// createAll creates the objects of a stream of YAML documents.
func createAll(ctx context.Context, hub client.Client, manifests string) error {
	reader := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(manifests)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the example: %w", err)
		}
		obj := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &obj.Object); err != nil {
			return fmt.Errorf("read the example: %w", err)
		}
		if len(obj.Object) == 0 {
			continue
		}
		if err := hub.Create(ctx, obj); err != nil {
			return fmt.Errorf("create %s %s: %w", obj.GetKind(), obj.GetName(), err)
		}
	}
}
