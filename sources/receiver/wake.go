package receiver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	notificationv1 "github.com/fluxcd/notification-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/policies/expression"
	"github.com/flotilla-io/flotilla/policies/webhook"
)

// kind makes objects of a kind that Receivers may name.
type kind struct {
	apiVersion string
	object     func() client.Object
	list       func() client.ObjectList
}

// kinds are those that are served.
var kinds = map[string]kind{
	sourcev1.GitRepositoryKind: {
		sourcev1.GroupVersion.String(), func() client.Object { return &sourcev1.GitRepository{} }, func() client.ObjectList { return &sourcev1.GitRepositoryList{} },
	},
	sourcev1.OCIRepositoryKind: {
		sourcev1.GroupVersion.String(), func() client.Object { return &sourcev1.OCIRepository{} }, func() client.ObjectList { return &sourcev1.OCIRepositoryList{} },
	},
	sourcev1.BucketKind: {
		sourcev1.GroupVersion.String(), func() client.Object { return &sourcev1.Bucket{} }, func() client.ObjectList { return &sourcev1.BucketList{} },
	},
	sourcev1.ExternalArtifactKind: {
		sourcev1.GroupVersion.String(), func() client.Object { return &sourcev1.ExternalArtifact{} }, func() client.ObjectList { return &sourcev1.ExternalArtifactList{} },
	},
	kustomizev1.KustomizationKind: {
		kustomizev1.GroupVersion.String(), func() client.Object { return &kustomizev1.Kustomization{} }, func() client.ObjectList { return &kustomizev1.KustomizationList{} },
	},
}

// named is an object that a Receiver names, and the kind that it is of.
type named struct {
	kind   string
	object client.Object
	filter *expression.Expression
}

// every is the name that stands for all objects with labels.
const every = "*"

// keyOf returns the object that an entry of a Receiver names.
func keyOf(of *notificationv1.Receiver, ref notificationv1.ReceiverResource) client.ObjectKey {
	return client.ObjectKey{Namespace: cmp.Or(ref.Namespace, of.Namespace), Name: ref.Name}
}

// resources returns the objects that a Receiver names. What is not there, or may not be named, is left out: the others
// are looked at all the same. some reports whether anything is.
func (s *server) resources(ctx context.Context, of *notificationv1.Receiver, by filters) (out []named, some bool, err error) {
	for i, ref := range of.Spec.Resources {
		k, served := kinds[ref.Kind]
		key := keyOf(of, ref)
		if !served || key.Namespace != of.Namespace && !s.opts.AllowCrossNamespace {
			some = true
			continue
		}
		objects, err := s.read(ctx, k, key, ref.MatchLabels)
		if err != nil {
			return nil, false, fmt.Errorf("read %s %s: %w", ref.Kind, key, err)
		}
		some = some || len(objects) == 0 && ref.Name != every
		for _, object := range objects {
			out = append(out, named{ref.Kind, object, by.each[i]})
		}
	}
	return out, some, nil
}

// read returns the object of a name, or for * those with labels.
func (s *server) read(ctx context.Context, k kind, key client.ObjectKey, labels map[string]string) ([]client.Object, error) {
	if key.Name != every {
		object := k.object()
		err := s.hub.Get(ctx, key, object)
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return []client.Object{object}, err
	}
	list := k.list()
	if err := s.hub.List(ctx, list, client.InNamespace(key.Namespace), client.MatchingLabels(labels)); err != nil {
		return nil, err
	}
	var out []client.Object
	err := apimeta.EachListItem(list, func(item runtime.Object) error {
		out = append(out, item.(client.Object))
		return nil
	})
	return out, err
}

// spent bounds what the filters of one request cost together.
const spent = 5_000_000

// concerned returns the objects that an event concerns, of those that a Receiver names.
func concerned(ctx context.Context, all []named, by filters, e webhook.Event, claims map[string]any) ([]named, error) {
	budget := expression.NewBudget(spent)
	var out []named
	for _, n := range all {
		if repository, ok := n.object.(*sourcev1.GitRepository); ok && !e.Concerns(repository) {
			continue
		}
		values := map[string]any{"req": e.Payload, "claims": claims}
		pass := true
		for _, filter := range []*expression.Expression{by.all, n.filter} {
			if filter == nil || !pass {
				continue
			}
			if values["res"] == nil {
				res, err := seen(n)
				if err != nil {
					return nil, err
				}
				values["res"] = res
			}
			var err error
			if pass, err = filter.Bool(ctx, values, budget); err != nil {
				return nil, fmt.Errorf("the filter for %s %s/%s: %w", n.kind, n.object.GetNamespace(), n.object.GetName(), err)
			}
		}
		if pass {
			out = append(out, n)
		}
	}
	return out, nil
}

// seen returns what filters see of an object: its kind and its metadata.
func seen(n named) (map[string]any, error) {
	whole, err := runtime.DefaultUnstructuredConverter.ToUnstructured(n.object)
	if err != nil {
		return nil, fmt.Errorf("read the metadata of %s %s/%s: %w", n.kind, n.object.GetNamespace(), n.object.GetName(), err)
	}
	return map[string]any{"apiVersion": kinds[n.kind].apiVersion, "kind": n.kind, "metadata": whole["metadata"]}, nil
}

// pause is the time between two reconciles of an object that are asked for.
const pause = time.Second

// waker asks for reconciles: at once, and once more at the end of the pause for all that came meanwhile, as what was
// fetched in between may be older than what they tell of. It is for use by several goroutines.
type waker struct {
	hub   client.Client
	clock clock.WithDelayedExecution

	mu   sync.Mutex
	last map[target]time.Time
	due  map[target]bool
}

type target struct {
	kind string
	key  client.ObjectKey
}

func newWaker(hub client.Client, c clock.WithDelayedExecution) *waker {
	return &waker{hub: hub, clock: c, last: map[target]time.Time{}, due: map[target]bool{}}
}

// wake asks for a reconcile of each object. clean returns an error as it may be told.
func (w *waker) wake(ctx context.Context, all []named, clean func(error) error) error {
	var errs []error
	for _, n := range all {
		to := target{n.kind, client.ObjectKeyFromObject(n.object)}
		if w.now(ctx, to, clean) {
			errs = append(errs, w.ask(ctx, to))
		}
	}
	return errors.Join(errs...)
}

// now reports whether an object may be asked now. If not, it is asked later.
func (w *waker) now(ctx context.Context, to target, clean func(error) error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.clock.Now()
	maps.DeleteFunc(w.last, func(t target, at time.Time) bool { return !w.due[t] && now.Sub(at) >= pause })
	last, ok := w.last[to]
	if !ok {
		w.last[to] = now
		return true
	}
	if !w.due[to] {
		w.due[to] = true
		ctx = context.WithoutCancel(ctx)
		w.clock.AfterFunc(max(pause-now.Sub(last), 0), func() { go w.later(ctx, to, clean) })
	}
	return false
}

func (w *waker) later(ctx context.Context, to target, clean func(error) error) {
	w.mu.Lock()
	delete(w.due, to)
	w.last[to] = w.clock.Now()
	w.mu.Unlock()
	if err := w.ask(ctx, to); err != nil {
		ctrl.LoggerFrom(ctx).Error(clean(err), "what a webhook tells of is seen at the interval only")
	}
}

// ask annotates an object as `flux reconcile` does.
func (w *waker) ask(ctx context.Context, to target) error {
	object := kinds[to.kind].object()
	object.SetNamespace(to.key.Namespace)
	object.SetName(to.key.Name)
	before := object.DeepCopyObject().(client.Object)
	object.SetAnnotations(map[string]string{meta.ReconcileRequestAnnotation: w.clock.Now().Format(time.RFC3339Nano)})
	if err := w.hub.Patch(ctx, object, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("ask for a reconcile of %s %s: %w", to.kind, to.key, err)
	}
	return nil
}

// names lists objects for the log.
func names(all []named) []string {
	var out []string
	for _, n := range all {
		out = append(out, n.kind+"/"+n.object.GetNamespace()+"/"+n.object.GetName())
	}
	slices.Sort(out)
	return out
}
