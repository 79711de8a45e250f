package bootstrap

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
)

const (
	pollEvery = 50 * time.Millisecond
	// writers is how many definitions are written at a time.
	writers = 8
)

// Definitions makes the server serve the kinds and returns when it does.
func Definitions(ctx context.Context, config *rest.Config, definitions []*apiextensionsv1.CustomResourceDefinition) error {
	hub, err := apiextensions.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("bootstrap: %w", err)
	}
	d := &definer{hub: hub}
	if err := d.install(ctx, definitions); err != nil {
		return fmt.Errorf("bootstrap: %w", err)
	}
	if err := d.wait(ctx, definitions); err != nil {
		return fmt.Errorf("bootstrap: %w", err)
	}
	return nil
}

type definer struct{ hub apiextensions.Interface }

func (d *definer) install(ctx context.Context, definitions []*apiextensionsv1.CustomResourceDefinition) error {
	list, err := d.hub.ApiextensionsV1().CustomResourceDefinitions().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list definitions: %w", err)
	}
	current := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for i := range list.Items {
		current[list.Items[i].Name] = &list.Items[i]
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for _, definition := range definitions {
		desired := complete(definition)
		group.Go(func() error {
			if err := d.ensure(ctx, desired, current[desired.Name]); err != nil {
				return fmt.Errorf("definition %s: %w", desired.Name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// ensure writes a definition unless it is as desired.
func (d *definer) ensure(ctx context.Context, desired, current *apiextensionsv1.CustomResourceDefinition) error {
	hub := d.hub.ApiextensionsV1().CustomResourceDefinitions()
	if current == nil {
		_, err := hub.Create(ctx, desired, metav1.CreateOptions{FieldManager: string(fieldOwner)})
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if current == nil {
			var err error
			if current, err = hub.Get(ctx, desired.Name, metav1.GetOptions{}); err != nil {
				return err
			}
		}
		next, changed := merge(desired, current)
		current = nil // a conflict asks the server again
		if !changed {
			return nil
		}
		_, err := hub.Update(ctx, next, metav1.UpdateOptions{FieldManager: string(fieldOwner)})
		return err
	})
}

// merge puts the desired spec, labels and annotations over the current ones.
func merge(desired, current *apiextensionsv1.CustomResourceDefinition) (next *apiextensionsv1.CustomResourceDefinition, changed bool) {
	next = current.DeepCopy()
	next.Spec = desired.Spec
	next.Labels = over(current.Labels, desired.Labels)
	next.Annotations = over(current.Annotations, desired.Annotations)
	return next, !apiequality.Semantic.DeepEqual(next, current)
}

func over(base, top map[string]string) map[string]string {
	if len(top) == 0 {
		return base
	}
	out := maps.Clone(base)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, top)
	return out
}

// complete fills in what the server would, so that the desired definition can
// be compared with a stored one.
func complete(definition *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	out := definition.DeepCopy()
	out.TypeMeta = metav1.TypeMeta{}
	out.CreationTimestamp = metav1.Time{}
	out.Status = apiextensionsv1.CustomResourceDefinitionStatus{}
	apiextensionsv1.SetDefaults_CustomResourceDefinition(out)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&out.Spec)
	return out
}

// wait returns when every definition is established and shown by discovery.
func (d *definer) wait(ctx context.Context, definitions []*apiextensionsv1.CustomResourceDefinition) error {
	missing := sets.New[string]()
	for _, definition := range definitions {
		for _, version := range definition.Spec.Versions {
			if version.Served {
				missing.Insert(definition.Spec.Group + "/" + version.Name + " " + definition.Spec.Names.Plural)
			}
		}
	}
	var last error
	err := wait.PollUntilContextCancel(ctx, pollEvery, true, func(context.Context) (bool, error) {
		_, lists, err := d.hub.Discovery().ServerGroupsAndResources()
		last = err
		for _, list := range lists {
			for _, resource := range list.APIResources {
				missing.Delete(list.GroupVersion + " " + resource.Name)
			}
		}
		return missing.Len() == 0, nil
	})
	if err != nil {
		return fmt.Errorf("kinds that are not served: %s: %w (last answer: %v)", strings.Join(slices.Sorted(maps.Keys(missing)), ", "), err, last)
	}
	return nil
}
