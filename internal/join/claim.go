package join

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/policies/hubclaim"
)

// ClaimOptions are which hub claims which member.
type ClaimOptions struct {
	// Member is a client that may write to the member's namespace kube-system.
	Member client.Client
	// Hub is the identity of the hub; empty claims nothing.
	Hub string
	// Cluster is the member's name on the hub.
	Cluster string
	// Address is where people find the hub; empty if that is not known.
	Address string
	// Mode is how the hub manages the member: hubclaim.Push or hubclaim.Pull.
	Mode string
	// Place is where the hub runs; empty if that is not known, or an agent acts in
	// the member.
	Place string
	// TakeOver takes the member from another hub that has claimed it.
	TakeOver bool
	// DryRun reports the steps without doing them.
	DryRun bool
	// Progress is called at every step; it may be nil.
	Progress func(Step)
}

func (o *ClaimOptions) claimant() hubclaim.Claimant {
	return hubclaim.Claimant{Hub: o.Hub, Cluster: o.Cluster, Address: o.Address, Mode: o.Mode, Place: o.Place}
}

// HubIdentity returns the UID of the hub's namespace kube-system; empty for a
// server that has none, or does not allow to read it.
func HubIdentity(ctx context.Context, hub client.Reader) (string, error) {
	id, err := identity(ctx, hub)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the hub's identity: %w", errors.Unwrap(err))
	}
	return id, nil
}

// claimOf reads the claim on a member; nil for none.
func claimOf(ctx context.Context, member client.Reader) (*corev1.Namespace, *hubclaim.Claim, error) {
	system := &corev1.Namespace{}
	if err := member.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, system); err != nil {
		return nil, nil, fmt.Errorf("read the cluster's claim: %w", err)
	}
	claim, err := hubclaim.Parse(system.Annotations[clusterv1alpha1.ClaimAnnotation])
	if err != nil {
		err = fmt.Errorf("%w: remove the annotation %s from its namespace %s", err, clusterv1alpha1.ClaimAnnotation, system.Name)
	}
	return system, claim, err
}

// ErrItself means that the cluster to join is the hub itself.
var ErrItself = errors.New("the cluster that is to join is this control plane itself: name the kubeconfig and context of another one")

// Unclaimed returns ErrItself if the member is the hub, and ErrClaimed if another
// hub has claimed the member and TakeOver is not set. A hub whose identity is not
// known may not take any claimed member.
func Unclaimed(ctx context.Context, o ClaimOptions) error {
	system, claim, err := claimOf(ctx, o.Member)
	if err != nil {
		return err
	}
	if o.Hub != "" && o.Hub == string(system.UID) {
		return ErrItself
	}
	return o.unclaimed(claim)
}

func (o *ClaimOptions) unclaimed(claim *hubclaim.Claim) error {
	switch {
	case !o.TakeOver && hubclaim.Judge(claim, o.claimant()) == hubclaim.Ours && claim.Home.Elsewhere(o.Place):
		return ErrElsewhere
	case o.TakeOver || hubclaim.Judge(claim, o.claimant()) != hubclaim.Anothers:
		return nil
	case o.Hub == "":
		return fmt.Errorf("%w, or to this one: it is %s, and the identity of this one cannot be read. An account that may read its namespace %s is needed",
			ErrClaimed, claim.Describe(), metav1.NamespaceSystem)
	}
	return fmt.Errorf("%w: it is %s: take it out there first, or use --take-over if that control plane is gone or is to give it up, which --take-over --dry-run explains",
		ErrClaimed, claim.Describe())
}

// Claim writes the hub's claim to the member. A member that refuses that joins
// all the same, and the control plane reports it. Errors: ErrClaimed.
func Claim(ctx context.Context, o ClaimOptions) error {
	system, claim, err := claimOf(ctx, o.Member)
	if err != nil {
		return err
	}
	if err := o.unclaimed(claim); err != nil || o.Hub == "" {
		return err
	}
	wanted, changed := hubclaim.Take(claim, o.claimant())
	if o.Place != "" && (wanted.Home == nil || wanted.Home.Elsewhere(o.Place)) {
		wanted.Home, changed = &hubclaim.Home{At: o.Place}, true
	}
	if !changed {
		return nil
	}
	if err := o.write(ctx, system, wanted, "claim", "claimed by"); !apierrors.IsForbidden(err) {
		return err
	}
	return nil
}

// write sets the claim on the member; nil removes it. verb and done are the words
// for errors and for the step.
func (o *ClaimOptions) write(ctx context.Context, system *corev1.Namespace, claim *hubclaim.Claim, verb, done string) error {
	report := side{name: "member", client: o.Member, progress: o.Progress}
	if report.progress == nil {
		report.progress = func(Step) {}
	}
	if o.DryRun {
		planned := "would put this control plane's claim on"
		if claim == nil {
			planned = "would take this control plane's claim off"
		}
		report.progress(Step{Side: report.name, Verb: planned, Object: "the cluster"})
		return nil
	}
	patch, err := members.ClaimPatch(system, claim)
	if err != nil {
		return err
	}
	if err := o.Member.Patch(ctx, system, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("%s the cluster: %w", verb, err)
	}
	report.report(done, system)
	return nil
}

// Ceded describes the claim of another hub that has the member by now, and with
// it the agent and the accounts there; empty if none has. Of the options it reads
// Hub, HubID and Member.
func Ceded(ctx context.Context, o UnjoinOptions) (string, error) {
	claim, err := o.ceded(ctx)
	if err != nil || claim == nil {
		return "", err
	}
	return claim.Describe(), nil
}

// ceded returns the claim of another hub that has the member by now; nil if none
// has.
func (o *UnjoinOptions) ceded(ctx context.Context) (*hubclaim.Claim, error) {
	mine, err := o.identity(ctx)
	if err != nil || mine == "" {
		return nil, err
	}
	_, claim, err := claimOf(ctx, o.Member)
	if err != nil || hubclaim.Judge(claim, hubclaim.Claimant{Hub: mine}) != hubclaim.Anothers {
		return nil, err
	}
	return claim, nil
}

// disclaim removes the hub's own claim from the member.
func (o *UnjoinOptions) disclaim(ctx context.Context) error {
	mine, err := o.identity(ctx)
	if err != nil || mine == "" {
		return err
	}
	system, claim, err := claimOf(ctx, o.Member)
	if err != nil || hubclaim.Judge(claim, hubclaim.Claimant{Hub: mine}) != hubclaim.Ours {
		return err
	}
	w := ClaimOptions{Member: o.Member, DryRun: o.DryRun, Progress: o.Progress}
	return w.write(ctx, system, nil, "release", "released by")
}

// identity returns the hub's identity; empty where it is not known.
func (o *UnjoinOptions) identity(ctx context.Context) (string, error) {
	if o.HubID != "" || o.Hub == nil {
		return o.HubID, nil
	}
	return HubIdentity(ctx, o.Hub)
}
