// Package listing reads the control plane in few requests.
//
// In go the flags of a call; out come a client that takes the served APIs from kubectl's cache, and the
// objects of lists, page by page. It writes nothing by itself and caches nothing.
package listing

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/controlplane/disk"
	"github.com/flotilla-io/flotilla/internal/setback"
)

// Hub returns a client of the control plane. It takes the served APIs from kubectl's cache, so that it
// needs few requests.
func Hub(f *fleet.Flags) (client.WithWatch, error) {
	cfg, err := f.Config()
	if err != nil {
		return nil, err
	}
	mapper, err := f.Factory().ToRESTMapper()
	if err != nil {
		return nil, err
	}
	return HubAt(cfg, mapper)
}

// HubAt is Hub for callers with their own configuration.
func HubAt(cfg *rest.Config, mapper apimeta.RESTMapper) (client.WithWatch, error) {
	reported, clock := &notices{}, &serverClock{}
	cfg = rest.CopyConfig(cfg)
	cfg.WarningHandler = reported
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return dated{next, clock} })
	hub, err := client.NewWithWatch(cfg, client.Options{Scheme: scheme.New(), Mapper: mapper})
	if err != nil {
		return nil, err
	}
	return &attentive{WithWatch: hub, reported: reported, clock: clock, opened: setback.Opened(cfg)}, nil
}

// attentive keeps what the control plane adds to its responses: warnings and times.
type attentive struct {
	client.WithWatch
	reported *notices
	clock    *serverClock
	opened   func(context.Context) (int64, error)
}

// Notice returns why the control plane stores nothing new, if it has announced that since the last call;
// empty otherwise.
func Notice(hub client.Reader) string {
	a, ok := hub.(*attentive)
	if !ok {
		return ""
	}
	a.reported.mu.Lock()
	defer a.reported.mu.Unlock()
	defer func() { a.reported.last = "" }()
	return a.reported.last
}

type notices struct {
	mu   sync.Mutex
	last string
}

// HandleWarningHeader implements rest.WarningHandler.
func (n *notices) HandleWarningHeader(_ int, _, text string) {
	if !strings.HasPrefix(text, disk.Notice) {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.last = text
}

// PageSize is the limit of objects in one response of a list.
const PageSize = 500

// Pages calls each with list, page by page.
func Pages[L client.ObjectList](ctx context.Context, hub client.Reader, list L, each func(L), opts ...client.ListOption) error {
	for next := ""; ; {
		page := list.DeepCopyObject().(L)
		if err := hub.List(ctx, page, append(slices.Clone(opts), client.Limit(PageSize), client.Continue(next))...); err != nil {
			return err
		}
		each(page)
		if next = page.GetContinue(); next == "" {
			return nil
		}
	}
}

// Each returns a function that calls take with every object of a list, page by page.
func Each[L client.ObjectList, T any](ctx context.Context, hub client.Reader, list L, take func(*T), opts ...client.ListOption) func() error {
	return func() error {
		var wrong error
		err := Pages(ctx, hub, list, func(page L) {
			wrong = errors.Join(wrong, apimeta.EachListItem(page, func(obj runtime.Object) error {
				item, ok := any(obj).(*T)
				if !ok {
					return fmt.Errorf("%T in %T", obj, page)
				}
				take(item)
				return nil
			}))
		}, opts...)
		return errors.Join(err, wrong)
	}
}
