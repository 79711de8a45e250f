package life

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// observe calls see with each write of what the lists select, until the function that it returns is called. That errs
// where a watch did not hear of all. See is called by several goroutines.
func observe(ctx context.Context, c client.WithWatch, lists map[client.ObjectList][]client.ListOption, see func(watch.Event)) (func() error, error) {
	var group errgroup.Group
	var over atomic.Bool // from here on a watch may say that it was cut off
	var watches []watch.Interface
	end := func() error {
		over.Store(true)
		for _, watcher := range watches {
			watcher.Stop()
		}
		return group.Wait()
	}
	for list, opts := range lists {
		watcher, err := watchFrom(ctx, c, list, opts)
		if err != nil {
			return nil, errors.Join(err, end())
		}
		watches = append(watches, watcher)
		group.Go(func() error {
			for event := range watcher.ResultChan() {
				if event.Type == watch.Error && over.Load() {
					return nil
				}
				if event.Type == watch.Error {
					return fmt.Errorf("watch %T: %w", list, apierrors.FromObject(event.Object))
				}
				see(event)
			}
			if !over.Load() {
				return fmt.Errorf("watch %T: it ended early", list)
			}
			return nil
		})
	}
	return end, nil
}

// watchFrom begins with what there is: the version of one object may be older than what a control
// plane knows that was killed.
func watchFrom(ctx context.Context, c client.WithWatch, list client.ObjectList, opts []client.ListOption) (watch.Interface, error) {
	if err := c.List(ctx, list, opts...); err != nil {
		return nil, fmt.Errorf("list %T: %w", list, err)
	}
	from := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}}
	watcher, err := c.Watch(ctx, list, append(slices.Clone(opts), from)...)
	if err != nil {
		return nil, fmt.Errorf("watch %T: %w", list, err)
	}
	return watcher, nil
}
