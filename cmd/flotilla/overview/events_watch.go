package overview

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/offspring"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/record"
)

// follow prints new Events of the servers until ctx ends.
func (o *eventsOptions) follow(ctx context.Context, out, warnings io.Writer, s *search, answers []fleet.Answer[found]) error {
	rows := make(chan record.Entry)
	ends := make(chan string)
	var following sync.WaitGroup
	for _, answer := range answers {
		if answer.Err != nil {
			continue
		}
		following.Go(func() {
			if err := s.follow(ctx, answer.Cluster, answer.Value, rows); ctx.Err() == nil {
				select {
				case ends <- fmt.Sprintf("warning: %s is not followed any more: %v\n", answer.Cluster, fleet.Describe(err)):
				case <-ctx.Done():
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { following.Wait(); close(done) }()
	for {
		select {
		case entry := <-rows:
			if err := record.Text(out, []record.Entry{entry}, record.TextOptions{Now: o.clock.Now(), Namespaces: o.all, NoHeader: true}); err != nil {
				return err
			}
		case end := <-ends:
			_, _ = io.WriteString(warnings, end)
		case <-done:
			if err := ctx.Err(); err != nil {
				return err
			}
			return fmt.Errorf("nobody is left to follow: see above")
		}
	}
}

// follow sends the entries of one server as they come.
func (s *search) follow(ctx context.Context, server string, from found, rows chan<- record.Entry) error {
	set, err := s.flags.Server(server, 0).KubernetesClientSet()
	if err != nil {
		return err
	}
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, from.version, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			return set.CoreV1().Events(s.namespace).Watch(ctx, opts)
		},
	})
	if err != nil {
		return err
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		if event.Type == watch.Error {
			return apierrors.FromObject(event.Object)
		}
		e, ok := event.Object.(*corev1.Event)
		if !ok || event.Type == watch.Deleted {
			continue
		}
		entry := record.Of(server, e)
		if slices.Contains(offspring.Below(s.kind), entry.Kind) && !from.filter.Has(entry) {
			// It may be a new object that the selected one owns.
			if from.filter.Objects, err = s.objects(ctx, set, server); err != nil {
				return err
			}
		}
		if !from.filter.Has(entry) {
			continue
		}
		select {
		case rows <- entry:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return ctx.Err()
}
