package aggregated

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	storeerr "k8s.io/apiserver/pkg/storage/errors"
	"k8s.io/apiserver/pkg/util/dryrun"
)

// errMoreFinalizers means that an object does not have exactly the finalizer of its loop, or
// is already being deleted.
var errMoreFinalizers = errors.New("it has other finalizers")

// Delete deletes an object, or marks it as being deleted if it has finalizers. If the loop
// whose finalizer is the only one deletes exactly this version without a grace period, it has
// already cleaned up: then one write replaces the mark and the removal of the finalizer.
func (s *mainStore) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	if s.finalizer == "" || !ending(ctx, options) {
		return s.Store.Delete(ctx, name, validate, options)
	}
	key, err := s.KeyFunc(ctx, name)
	if err != nil {
		return nil, false, err
	}
	alone := func(ctx context.Context, obj runtime.Object) error {
		object, err := meta.Accessor(obj)
		switch {
		case err != nil:
			return err
		case !slices.Equal(object.GetFinalizers(), []string{s.finalizer}) || object.GetDeletionTimestamp() != nil:
			return errMoreFinalizers
		case validate == nil:
			return nil
		}
		return validate(ctx, obj)
	}
	out := s.NewFunc()
	only := &storage.Preconditions{UID: options.Preconditions.UID, ResourceVersion: options.Preconditions.ResourceVersion}
	err = s.Storage.Delete(ctx, key, out, only, alone, dryrun.IsDryRun(options.DryRun), nil, storage.DeleteOptions{})
	if errors.Is(err, errMoreFinalizers) {
		return s.Store.Delete(ctx, name, validate, options)
	}
	if err != nil {
		return nil, false, storeerr.InterpretDeleteError(err, s.DefaultQualifiedResource, name)
	}
	return out, true, nil
}

// ending reports whether a loop of the control plane deletes one version, without grace.
func ending(ctx context.Context, options *metav1.DeleteOptions) bool {
	return byOwn(ctx) && options != nil && options.GracePeriodSeconds != nil && *options.GracePeriodSeconds == 0 &&
		options.Preconditions != nil && options.Preconditions.UID != nil && options.Preconditions.ResourceVersion != nil
}
