// Package cascadingdeletion counts what is deleted along with objects that are removed from the control plane:
// with a Namespace all that is in it, with a CustomResourceDefinition all objects of its kind, with a
// Cluster all that it runs for the fleet, and with a Kustomization what it applied, and so on.
//
// In go the objects that would be deleted; out comes a Loss for each, and which objects clusters have yet to remove
// with them (Descendants). It reads the control plane without
// a cache and with its own rights, as objects are lost whether or not the tenant may read them. For the same
// reason it returns names only of precious objects that Kustomizations applied, as a person has to allow their
// deletion; all else is counted. It writes nothing.
package cascadingdeletion

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/contents"
	"github.com/flotilla-io/flotilla/policies/interpreter/running"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// most is up to how many objects within one are counted: more make no difference to the brake.
const most = 1000

var (
	namespaceKind     = schema.GroupKind{Kind: "Namespace"}
	clusterKind       = clusterv1alpha1.GroupVersion.WithKind("Cluster").GroupKind()
	volumeClaimKind   = schema.GroupKind{Kind: "PersistentVolumeClaim"}
	kustomizationKind = kustomizev1.GroupVersion.WithKind(kustomizev1.KustomizationKind).GroupKind()
)

// Counter counts losses. Use New.
type Counter struct {
	hub    client.Reader
	server hubServer
}

// hubServer is the control plane in the form in which package contents reads servers.
type hubServer struct {
	config  *rest.Config
	http    *http.Client
	clients kubernetes.Interface
}

func (hubServer) Name() string                    { return "the control plane" }
func (s hubServer) Config() *rest.Config          { return s.config }
func (s hubServer) HTTP() *http.Client            { return s.http }
func (s hubServer) Clients() kubernetes.Interface { return s.clients }

// New returns a Counter that reads through hub, which must not be a cache, and with clients of config. It
// returns an error if config is unusable.
func New(hub client.Reader, config *rest.Config) (*Counter, error) {
	connection, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("set up a connection to the control plane: %w", err)
	}
	clients, err := kubernetes.NewForConfigAndClient(config, connection)
	if err != nil {
		return nil, fmt.Errorf("set up a client of the control plane: %w", err)
	}
	return &Counter{hub: hub, server: hubServer{config, connection, clients}}, nil
}

// Kept returns the objects of a Kustomization's inventory that stay when it is deleted, as others take them over.
type Kept func(ctx context.Context, ks *kustomizev1.Kustomization, owned []inventory.Entry) (map[inventory.ID]bool, error)

// Revision is what the Counter has to know of the revision that removes objects.
type Revision struct {
	// Kept returns what stays of Kustomizations that are deleted.
	Kept Kept
	// Places says that the revision writes policies. These may decide what clusters keep, so that nothing is
	// counted as kept before they are applied.
	Places bool
}

// Of returns a Loss for each of the entries, in their order. It returns an error if anything cannot be read, as
// an uncounted loss would pass the brake.
func (c *Counter) Of(ctx context.Context, removed []inventory.Entry, by Revision) ([]inventory.Loss, error) {
	going := map[inventory.ID]bool{}
	for _, e := range removed {
		going[e.ID] = true
	}
	reaches, stays := make([][]inventory.Entry, len(removed)), make([]int, len(removed))
	for i, e := range removed {
		var err error
		if reaches[i], stays[i], err = c.reach(ctx, e, going, by.Kept); err != nil {
			return nil, err
		}
	}
	out := make([]inventory.Loss, len(removed))
	for i, e := range removed {
		var err error
		if out[i], err = c.loss(ctx, e, reaches[i], going, by); err != nil {
			return nil, err
		}
		out[i].HandedOver = stays[i] > 0 && out[i].Within == 0
		if by.Places {
			continue
		}
		if out[i].Preserved, err = c.preserved(ctx, slices.Concat(out[i].Contained, []inventory.ID{e.ID})); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// loss counts what is deleted with an entry and with the objects in reach, which its deletion deletes.
func (c *Counter) loss(ctx context.Context, e inventory.Entry, reach []inventory.Entry, going map[inventory.ID]bool, by Revision) (inventory.Loss, error) {
	carried, err := c.carried(ctx, e.ID)
	if err != nil {
		return inventory.Loss{}, err
	}
	out := inventory.Loss{ID: e.ID, Carried: carried, Within: len(reach)}
	if out.Clusters, err = c.clusters(ctx, e.ID); err != nil {
		return inventory.Loss{}, err
	}
	for _, reached := range append(reach, e) {
		if err := c.outside(ctx, reached, &out); err != nil {
			return inventory.Loss{}, err
		}
		found, err := c.within(ctx, reached, going, by)
		if err != nil {
			return inventory.Loss{}, fmt.Errorf("see what would go with %s: %w", inventory.Describe(reached.ID), err)
		}
		out.Within += found.all
		out.Claims += found.claims
		out.Kept += found.kept
		out.Hosts = out.Hosts || found.runs
		out.Precious = out.Precious || found.all > 0 || reached.ID.GroupKind == volumeClaimKind
		if reached.ID == e.ID {
			continue
		}
		runs, err := c.carried(ctx, reached.ID)
		if err != nil {
			return inventory.Loss{}, err
		}
		if inventory.IsWorkload(reached.ID) || runs != running.Passive {
			out.Runs++
		}
		if inventory.PreciousKind(reached.ID.GroupKind) != "" {
			out.Contained = append(out.Contained, reached.ID)
		}
	}
	return out, nil
}

// found counts what lies within an object: all of it, volume claims whose data is deleted, and volume claims that
// clusters keep. It also says whether something runs there.
type found struct {
	all, claims, kept int
	runs              bool
}

// hosted are the kinds of Kubernetes that run something, as package contents names them.
var hosted = []string{"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob", "Pod"}

// foundIn counts what lies in a namespace, given its objects as package contents names them: "Kind name".
func (c *Counter) foundIn(ctx context.Context, namespace string, titles []string, by Revision) (found, error) {
	out := found{all: len(titles)}
	var claims []inventory.ID
	for _, title := range titles {
		kind, name, _ := strings.Cut(title, " ")
		out.runs = out.runs || slices.Contains(hosted, kind)
		if kind == volumeClaimKind.Kind {
			claims = append(claims, inventory.ID{Namespace: namespace, Name: name, GroupKind: volumeClaimKind})
		}
	}
	if !by.Places {
		kept, err := c.preserved(ctx, claims)
		if err != nil {
			return found{}, err
		}
		out.kept = len(kept)
	}
	out.claims = len(claims) - out.kept
	return out, nil
}

// reach returns what is deleted along with an entry that is a Kustomization, and with the Kustomizations that it
// applied, and adds that to going. It also returns how many of its objects stay, as others take them over.
func (c *Counter) reach(ctx context.Context, e inventory.Entry, going map[inventory.ID]bool, kept Kept) ([]inventory.Entry, int, error) {
	if e.ID.GroupKind != kustomizationKind {
		return nil, 0, nil
	}
	var ks kustomizev1.Kustomization
	err := c.hub.Get(ctx, client.ObjectKey{Namespace: e.ID.Namespace, Name: e.ID.Name}, &ks)
	if apierrors.IsNotFound(err) || err == nil && !inventory.Deletes(&ks) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, fmt.Errorf("read %s: %w", inventory.Describe(e.ID), err)
	}
	entries, err := inventory.Here(&ks)
	if err != nil {
		return nil, 0, fmt.Errorf("read the inventory of %s: %w", inventory.Describe(e.ID), err)
	}
	stays, err := kept(ctx, &ks, entries)
	if err != nil {
		return nil, 0, err
	}
	there, err := c.there(ctx, entries)
	if err != nil {
		return nil, 0, err
	}
	var out []inventory.Entry
	handed := 0
	for _, owned := range there {
		if stays[owned.ID] {
			handed++
			continue
		}
		if going[owned.ID] {
			continue
		}
		going[owned.ID] = true
		more, _, err := c.reach(ctx, owned, going, kept)
		if err != nil {
			return nil, 0, err
		}
		out = append(append(out, owned), more...)
	}
	return out, handed, nil
}

// outside counts what a Kustomization has applied in a cluster outside of the fleet, if that is deleted with it. Nobody looks there:
// what is precious counts, whatever is in it.
func (c *Counter) outside(ctx context.Context, e inventory.Entry, out *inventory.Loss) error {
	if e.ID.GroupKind != kustomizationKind {
		return nil
	}
	var ks kustomizev1.Kustomization
	err := c.hub.Get(ctx, client.ObjectKey{Namespace: e.ID.Namespace, Name: e.ID.Name}, &ks)
	place := inventory.PlaceOf(ks.Status)
	if apierrors.IsNotFound(err) || err == nil && (place == (inventory.Place{}) || !inventory.Deletes(&ks)) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", inventory.Describe(e.ID), err)
	}
	entries, err := inventory.In(&ks, place)
	if err != nil {
		return fmt.Errorf("read the inventory of %s: %w", inventory.Describe(e.ID), err)
	}
	for _, owned := range entries {
		out.Within++
		if inventory.IsWorkload(owned.ID) {
			out.Runs++
		}
		if inventory.PreciousKind(owned.ID.GroupKind) != "" {
			out.Precious, out.Contained = true, append(out.Contained, owned.ID)
		}
	}
	return nil
}

// within counts what lies in a Namespace, is of the kind of a CustomResourceDefinition, or runs in a Cluster. What is
// in going is not counted in the first two.
func (c *Counter) within(ctx context.Context, e inventory.Entry, going map[inventory.ID]bool, by Revision) (found, error) {
	what := contents.Search{Most: most, Leaves: func(kind schema.GroupKind, obj metav1.Object) bool {
		return going[inventory.ID{GroupKind: kind, Namespace: obj.GetNamespace(), Name: obj.GetName()}]
	}}
	switch {
	case e.ID.GroupKind == namespaceKind:
		titles, err := contents.InNamespace(ctx, c.server, e.ID.Name, what)
		if err != nil {
			return found{}, err
		}
		return c.foundIn(ctx, e.ID.Name, titles, by)
	case contents.Defines(e.ID.GroupKind):
		crd := &unstructured.Unstructured{}
		crd.SetGroupVersionKind(e.GroupVersionKind())
		err := c.hub.Get(ctx, client.ObjectKey{Name: e.ID.Name}, crd)
		if apierrors.IsNotFound(err) {
			return found{}, nil
		}
		if err != nil {
			return found{}, err
		}
		titles, err := contents.OfKind(ctx, c.server, crd, what)
		return found{all: len(titles)}, err
	case e.ID.GroupKind == clusterKind:
		works := &metav1.PartialObjectMetadataList{}
		works.SetGroupVersionKind(workv1alpha1.GroupVersion.WithKind("WorkList"))
		err := c.hub.List(ctx, works, client.InNamespace(workv1alpha2.ExecutionNamespace(e.ID.Name)), client.Limit(most))
		return found{all: len(works.Items)}, err
	default:
		return found{}, nil
	}
}
