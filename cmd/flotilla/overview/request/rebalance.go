package request

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1alpha1 "github.com/flotilla-io/flotilla/api/apps/v1alpha1"
	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/rollup"
)

func newRebalanceCommand(f *fleet.Flags, now clock.Clock) *cobra.Command {
	o := &requestOptions{flags: f, clock: now}
	cmd := &cobra.Command{
		Use:   "rebalance KIND/NAME...",
		Short: "Have workloads placed anew, by what counts now",
		Long: `Have workloads placed anew, by what counts now, and wait until that is decided.
What runs is placed anew by itself when its policy, its replicas or a cluster that
it runs in asks for it, and not because a cluster has come, or come back. Clusters
that have them stay in the choice while they are cordoned or not ready, as Karmada
has it. A WorkloadRebalancer is written, which goes after five minutes.`,
		Example: `  flotilla rebalance deployment/web -n shop
  flotilla rebalance deployment/web statefulset/db -n shop`,
		ValidArgsFunction: f.CompleteObject(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return command.Usage(errors.New("objects are needed: KIND/NAME, such as deployment/web"))
			}
			r, err := o.requester(cmd.OutOrStdout())
			if err != nil {
				return err
			}
			infos, err := f.Factory().NewBuilder().Unstructured().NamespaceParam(r.namespace).DefaultNamespace().
				ResourceTypeOrNameArgs(false, args...).Latest().Flatten().Do().Infos()
			if err != nil {
				return r.absent(cmd.Context(), err)
			}
			var objects []*unstructured.Unstructured
			for _, info := range infos {
				if obj, ok := info.Object.(*unstructured.Unstructured); ok {
					objects = append(objects, obj)
				}
			}
			return fleet.Describe(r.rebalance(cmd.Context(), objects))
		},
	}
	cmd.Flags().DurationVar(&o.timeout, "timeout", defaultTimeout, "how long to wait")
	return cmd
}

// rebalancerStays is for how many seconds a finished WorkloadRebalancer is kept.
const rebalancerStays = 300

// poll is the time between two reads of objects that are not watched.
const poll = 200 * time.Millisecond

// rebalance requests a new placement of templates, and prints where each runs once that is decided.
func (r *requester) rebalance(ctx context.Context, templates []*unstructured.Unstructured) error {
	rebalancer := &appsv1alpha1.WorkloadRebalancer{ObjectMeta: metav1.ObjectMeta{GenerateName: "rebalance-"}}
	rebalancer.Spec.TTLSecondsAfterFinished = ptr.To[int32](rebalancerStays)
	for _, t := range templates {
		if _, err := r.binding(ctx, t.GetKind(), t.GetNamespace(), t.GetName()); apierrors.IsNotFound(err) {
			return notCarried(t.GetKind(), t.GetNamespace(), t.GetName())
		} else if err != nil {
			return fmt.Errorf("read the binding of %s %s: %w", t.GetKind(), t.GetName(), err)
		}
		rebalancer.Spec.Workloads = append(rebalancer.Spec.Workloads, appsv1alpha1.ObjectReference{
			APIVersion: t.GetAPIVersion(), Kind: t.GetKind(), Namespace: t.GetNamespace(), Name: t.GetName(),
		})
	}
	if err := r.hub.Create(ctx, rebalancer); err != nil {
		return fmt.Errorf("ask for a new placement: %w", err)
	}
	r.say(acts, "asked for a new placement: WorkloadRebalancer %s", rebalancer.Name)
	ctx, cancel := context.WithTimeoutCause(ctx, r.timeout, errTimeout)
	defer cancel()
	err := r.until(ctx, func(ctx context.Context) (bool, error) {
		err := r.hub.Get(ctx, client.ObjectKeyFromObject(rebalancer), rebalancer)
		return rebalancer.Status.FinishTime != nil, err
	})
	if err != nil {
		return fmt.Errorf("wait for WorkloadRebalancer %s: %w", rebalancer.Name, err)
	}
	var failed []error
	for _, observed := range rebalancer.Status.ObservedWorkloads {
		failed = append(failed, r.placed(ctx, observed))
	}
	return errors.Join(failed...)
}

// absent explains the error for a missing object: with a similar name, and how to list the objects of its namespace.
func (r *requester) absent(ctx context.Context, err error) error {
	var status apierrors.APIStatus
	kind := fleet.Absent(err)
	if kind == "" || !errors.As(err, &status) {
		return fleet.Describe(err)
	}
	details, namespace, meant := status.Status().Details, r.namespace, ""
	gvk, unknown := r.hub.RESTMapper().KindFor(schema.GroupVersionResource{Group: details.Group, Resource: details.Kind})
	if namespaced, err := r.hub.IsObjectNamespaced(partly(gvk)); unknown == nil && err == nil {
		if !namespaced {
			namespace = ""
		}
		meant = fleet.Meant(ctx, r.hub, gvk, client.ObjectKey{Namespace: namespace, Name: details.Name})
	}
	return fmt.Errorf("%w%s: flotilla get %s%s lists what there is", &apierrors.StatusError{ErrStatus: status.Status()}, meant, kind, inNamespace(namespace))
}

func partly(kind schema.GroupVersionKind) client.Object {
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(kind)
	return obj
}

// binding reads the binding of a template.
func (r *requester) binding(ctx context.Context, kind, namespace, name string) (workv1alpha2.Binding, error) {
	b := workv1alpha2.Binding(&workv1alpha2.ResourceBinding{})
	if namespace == "" {
		b = &workv1alpha2.ClusterResourceBinding{}
	}
	return b, r.hub.Get(ctx, client.ObjectKey{Namespace: namespace, Name: workv1alpha2.BindingName(kind, name)}, b)
}

// notCarried returns the error that a template without a binding is not placed anew.
func notCarried(kind, namespace, name string) error {
	return fmt.Errorf("%s %s is not placed anew: no policy carries it: flotilla explain %s",
		kind, titleOf(namespace, name), objectOf(appsv1alpha1.ObjectReference{Kind: kind, Namespace: namespace, Name: name}))
}

func titleOf(namespace, name string) string { return strings.TrimPrefix(namespace+"/"+name, "/") }

// placed waits for the decision, and prints where a template runs.
func (r *requester) placed(ctx context.Context, observed appsv1alpha1.ObservedWorkload) error {
	of := observed.Workload
	switch {
	case observed.Reason == appsv1alpha1.RebalanceObjectNotFound:
		return notCarried(of.Kind, of.Namespace, of.Name)
	case observed.Result != appsv1alpha1.RebalanceSuccessful:
		return fmt.Errorf("%s %s is not placed anew: %s", of.Kind, titleOf(of.Namespace, of.Name), observed.Reason)
	}
	var binding workv1alpha2.Binding
	asked := r.clock.Now()
	err := r.until(ctx, func(ctx context.Context) (_ bool, err error) {
		binding, err = r.binding(ctx, of.Kind, of.Namespace, of.Name)
		return err == nil && (placement.Answered(binding) || unplaced(binding, r.clock.Since(asked)) != ""), err
	})
	if err != nil {
		return fmt.Errorf("wait for the placement of %s %s: %w: flotilla explain %s", of.Kind, titleOf(of.Namespace, of.Name), err, objectOf(of))
	}
	if why := unplaced(binding, answerTime); why != "" {
		return fmt.Errorf("%s %s %s: %s: flotilla explain %s", of.Kind, titleOf(of.Namespace, of.Name), stays(binding), why, objectOf(of))
	}
	targets := binding.BindingSpec().Clusters
	r.say(done, "%s %s is placed in %s%s", of.Kind, titleOf(of.Namespace, of.Name), placement.Text(targets), r.doubt(ctx, targets))
	return nil
}

// doubt says which clusters of a placement are not ready; empty where all are, or that cannot be read.
func (r *requester) doubt(ctx context.Context, targets []workv1alpha2.TargetCluster) string {
	silent := rollup.Silences{}
	for _, target := range targets {
		var c clusterv1alpha1.Cluster
		if err := r.hub.Get(ctx, client.ObjectKey{Name: target.Name}, &c); err == nil {
			silent.Add(&c)
		}
	}
	if _, text := silent.Among(targets); text != "" {
		return "; " + text
	}
	return ""
}

// answerTime is how long the scheduler may take to answer a request. It does not write the same failure again, so only the
// time that has passed shows that it tried.
const answerTime = 3 * time.Second

// unplaced returns why a binding is not placed anew; empty if it is, or if that is not decided yet. ago is the time
// since the request.
func unplaced(b workv1alpha2.Binding, ago time.Duration) string {
	spec := b.BindingSpec()
	if s := spec.Suspension; s != nil && ptr.Deref(s.Scheduling, false) {
		return "its scheduling is suspended, by suspension.scheduling of its policy"
	}
	record, decided := placement.RecordOf(b)
	asked := spec.RescheduleTriggeredAt
	switch {
	case !decided || record.Succeeded():
		return ""
	case ago < answerTime && !placement.Answered(b) && asked != nil && record.At.Before(asked):
		return ""
	}
	return strings.TrimSuffix(record.Message, ".")
}

// stays returns where a template keeps running that is not placed anew.
func stays(b workv1alpha2.Binding) string {
	if clusters := b.BindingSpec().Clusters; len(clusters) > 0 {
		return "stays in " + placement.Text(clusters)
	}
	return "is placed nowhere"
}

// objectOf returns a template as the arguments of a command.
func objectOf(of appsv1alpha1.ObjectReference) string {
	return strings.ToLower(of.Kind) + "/" + of.Name + inNamespace(of.Namespace)
}

func inNamespace(namespace string) string {
	if namespace == "" {
		return ""
	}
	return " -n " + namespace
}

// until polls until holds returns true.
func (r *requester) until(ctx context.Context, holds func(context.Context) (bool, error)) error {
	err := wait.PollUntilContextCancel(ctx, poll, true, func(ctx context.Context) (bool, error) {
		ok, err := holds(ctx)
		if apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err) {
			return false, nil
		}
		return ok && err == nil, err
	})
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
