package twins

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/registration/identity"
)

// Twins refuses one cluster under two names. A client that registers a cluster checks that
// too, but two clients at the same moment do not see each other. So a request first takes
// a Lease named by the id and then looks at the other Clusters: of two requests, only one
// gets the Lease.
type Twins struct {
	*admission.Handler
	hub   dynamic.Interface
	clock clock.WithTicker
}

var (
	_ admission.ValidationInterface     = (*Twins)(nil)
	_ admission.InitializationValidator = (*Twins)(nil)
)

// New returns the plugin.
func New(clk clock.WithTicker) *Twins {
	return &Twins{Handler: admission.NewHandler(admission.Create, admission.Update, admission.Delete), clock: clk}
}

// SetDynamicClient sets the client. The server calls it with a client of its own.
func (p *Twins) SetDynamicClient(hub dynamic.Interface) { p.hub = hub }

// ValidateInitialization is called when the server is built.
func (p *Twins) ValidateInitialization() error {
	if p.hub == nil {
		return errors.New("no client")
	}
	return nil
}

// Validate refuses a Cluster whose id another Cluster has or is about to have. A change
// that keeps the id makes no requests.
func (p *Twins) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetOperation() == admission.Delete {
		return asRefusal(a, p.leave(ctx, a))
	}
	cluster, ok := a.GetObject().(*clusterv1alpha1.Cluster)
	if !ok || a.GetSubresource() != "" || cluster.Spec.ID == "" {
		return nil
	}
	if old, ok := a.GetOldObject().(*clusterv1alpha1.Cluster); ok && old.Spec.ID == cluster.Spec.ID {
		return nil
	}
	if a.IsDryRun() {
		return asRefusal(a, p.alone(ctx, cluster))
	}
	err := p.take(ctx, cluster)
	if err == nil {
		if err = p.alone(ctx, cluster); err != nil {
			err = errors.Join(err, p.release(ctx, cluster))
		}
	}
	return asRefusal(a, err)
}

// leave releases the Lease of a Cluster that is about to be deleted. Until the Cluster is
// gone, alone still finds it.
func (p *Twins) leave(ctx context.Context, a admission.Attributes) error {
	cluster, ok := a.GetOldObject().(*clusterv1alpha1.Cluster)
	if !ok || a.GetSubresource() != "" || a.IsDryRun() || cluster.Spec.ID == "" {
		return nil
	}
	return p.release(ctx, cluster)
}

// release deletes the Lease of a cluster's id, if that cluster holds it.
func (p *Twins) release(ctx context.Context, cluster *clusterv1alpha1.Cluster) error {
	found, err := p.leases().Get(ctx, leaseOf(cluster.Spec.ID), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return wrapped("read who holds the id of the cluster", err)
	}
	if holder, _, _ := unstructured.NestedString(found.Object, "spec", "holderIdentity"); holder != cluster.Name {
		return nil
	}
	version := found.GetResourceVersion()
	err = p.leases().Delete(ctx, found.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &version}})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return wrapped("let go of the id of the cluster", err)
}

func (p *Twins) leases() dynamic.ResourceInterface {
	return p.hub.Resource(coordinationv1.SchemeGroupVersion.WithResource("leases")).Namespace(workv1alpha2.NamespaceKarmadaSystem)
}

// leaseOf names the Lease of an id.
func leaseOf(id string) string {
	sum := sha256.Sum256([]byte(id))
	return "cluster-id-" + hex.EncodeToString(sum[:16])
}

// errTwin is the message of a refusal: the cluster is registered under another name, or is
// being registered.
type errTwin string

// Error implements error.
func (e errTwin) Error() string { return string(e) }

func asRefusal(a admission.Attributes, err error) error {
	var twin errTwin
	switch {
	case err == nil:
		return nil
	case errors.As(err, &twin):
		return admission.NewForbidden(a, twin)
	default:
		return apierrors.NewInternalError(err)
	}
}

// alone returns an error if another Cluster has the id.
func (p *Twins) alone(ctx context.Context, cluster *clusterv1alpha1.Cluster) error {
	list, err := p.hub.Resource(clusterv1alpha1.GroupVersion.WithResource("clusters")).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list the clusters: %w", err)
	}
	for i := range list.Items {
		other := &list.Items[i]
		if id, _, _ := unstructured.NestedString(other.Object, "spec", "id"); id == cluster.Spec.ID && other.GetName() != cluster.Name {
			mode, _, _ := unstructured.NestedString(other.Object, "spec", "syncMode")
			return errTwin(fmt.Sprintf("spec.id: this cluster is registered as %s: flotilla %s %[1]s removes it, to give it another name",
				other.GetName(), identity.Leaving(clusterv1alpha1.ClusterSyncMode(mode))))
		}
	}
	return nil
}

const (
	// registrationGrace is longer than a request takes. A holder that took the Lease longer
	// ago and has no Cluster will not get one by that request.
	registrationGrace = 70 * time.Second
	// soon is how long to wait for the Cluster of the holder, and soonEvery how often to look.
	soon, soonEvery = 2 * time.Second, 50 * time.Millisecond
	// idLabel distinguishes the Leases of ids from others.
	idLabel = "cluster.flotilla.io/registration"
)

// take acquires the Lease of the id for the cluster, or returns an error that names the
// holder.
func (p *Twins) take(ctx context.Context, cluster *clusterv1alpha1.Cluster) error {
	wanted := &coordinationv1.Lease{
		TypeMeta: metav1.TypeMeta{APIVersion: coordinationv1.SchemeGroupVersion.String(), Kind: "Lease"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: workv1alpha2.NamespaceKarmadaSystem, Name: leaseOf(cluster.Spec.ID), Labels: map[string]string{idLabel: "true"},
		},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To(cluster.Name), AcquireTime: &metav1.MicroTime{Time: p.clock.Now()}},
	}
	_, err := p.leases().Create(ctx, raw(wanted), metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return wrapped("hold the id of the cluster", err)
	}
	found, err := p.leases().Get(ctx, wanted.Name, metav1.GetOptions{})
	if err != nil {
		return wrapped("read who holds the id of the cluster", err)
	}
	is := &coordinationv1.Lease{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, is); err != nil {
		return wrapped("read who holds the id of the cluster", err)
	}
	if holder := ptr.Deref(is.Spec.HolderIdentity, ""); holder != cluster.Name {
		if err := p.await(ctx, holder, cluster, is); err != nil {
			return err
		}
	}
	is.Spec, is.TypeMeta = wanted.Spec, wanted.TypeMeta
	_, err = p.leases().Update(ctx, raw(is), metav1.UpdateOptions{})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return errTwin("spec.id: this cluster is being registered by somebody else: look who it was (flotilla get clusters), or ask again")
	}
	return wrapped("hold the id of the cluster", err)
}

// await returns an error if the holder's Cluster has the id, or may still get it.
func (p *Twins) await(ctx context.Context, holder string, cluster *clusterv1alpha1.Cluster, lease *coordinationv1.Lease) error {
	left := registrationGrace
	if since := lease.Spec.AcquireTime; since != nil {
		left = registrationGrace - p.clock.Since(since.Time)
	}
	if left <= 0 || left > registrationGrace {
		return nil // alone checks the existing Clusters anyway
	}
	var has bool
	err := wait.PollUntilContextTimeout(ctx, soonEvery, soon, true, func(ctx context.Context) (bool, error) {
		other, err := p.hub.Resource(clusterv1alpha1.GroupVersion.WithResource("clusters")).Get(ctx, holder, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("read cluster %s: %w", holder, err)
		}
		is, _, _ := unstructured.NestedString(other.Object, "spec", "id")
		has = is == cluster.Spec.ID
		return has, nil
	})
	switch {
	case has:
		return p.alone(ctx, cluster)
	case err != nil && !wait.Interrupted(err):
		return err
	}
	return errTwin(fmt.Sprintf("spec.id: this cluster is being registered as %s: if that comes to nothing, ask again in %s", holder, left.Round(time.Second)))
}

func raw(lease *coordinationv1.Lease) *unstructured.Unstructured {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(lease)
	if err != nil {
		panic(err) // a Lease always converts
	}
	return &unstructured.Unstructured{Object: content}
}

func wrapped(what string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
