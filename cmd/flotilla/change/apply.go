package change

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/kubectl/pkg/cmd/apply"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/selector"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// applyFlags are the flags of apply that are not kubectl's.
type applyFlags struct {
	fleet    *fleet.Flags
	kubectl  *apply.ApplyFlags
	late     *lateStreams
	clusters []string
	all      bool
	made     []string // the created policies, as "propagationpolicy web-6d7f8d5f5b -n shop"
}

func newApply(f *fleet.Flags) *cobra.Command {
	a := &applyFlags{fleet: f, late: &lateStreams{}}
	a.kubectl = apply.NewApplyFlags(a.late.streams())
	cmd := &cobra.Command{
		Use:   "apply (-f FILENAME | -k DIRECTORY) [-C CLUSTER,... | --all-clusters]",
		Short: "Apply manifests to the control plane, and say where they run",
		Long: `Apply manifests to the control plane, with all flags that Kubernetes' own apply has.

With --cluster or --all-clusters a policy is applied for each object that carries it
to these clusters: a PropagationPolicy in its namespace, or a
ClusterPropagationPolicy. It bears the name of the object and a hash, the same each
time, so that applying again with other clusters moves it. It stays when the object
is deleted: delete the policy by its name, too.`,
		Example: `  # policies are among the manifests, or there already
  flotilla apply -f app.yaml

  # carry everything in the file to two clusters
  flotilla apply -f app.yaml --cluster east,west

  # carry it to all clusters that there are now
  flotilla apply -f app.yaml --all-clusters`,
		Args:                  cobra.ArbitraryArgs,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			a.late.take(cmd)
			return fleet.Until(cmd.Context(), func() error { return a.run(cmd, args) })
		},
	}
	a.kubectl.AddFlags(cmd)
	flags := cmd.Flags()
	flags.StringSliceVarP(&a.clusters, "cluster", "C", nil, "clusters that run what is applied")
	flags.BoolVar(&a.all, "all-clusters", false, "all clusters run what is applied")
	if err := cmd.RegisterFlagCompletionFunc("cluster", f.CompleteClusters); err != nil {
		panic(err) // it was defined above
	}
	adapt(cmd, f, a.late)
	for _, sub := range apply.NewCmdApply(program, f.Factory(), a.late.streams()).Commands() {
		adapt(sub, f, a.late)
		cmd.AddCommand(sub)
	}
	return cmd
}

func (a *applyFlags) run(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) > 0:
		return command.Usage(fmt.Errorf("%q is too much: files are named by -f", args[0]))
	case cmd.Flags().Changed("cluster") && len(a.clusters) == 0:
		return command.Usage(errors.New("--cluster names no cluster"))
	case a.all && len(a.clusters) > 0:
		return command.Usage(errors.New("--all-clusters and --cluster cannot be used together"))
	}
	clusters, err := a.chosen(cmd.Context())
	if err != nil {
		return err
	}
	return guard(inNamespace(cmd, a.fleet), func() {
		o, err := a.kubectl.ToOptions(a.fleet.Factory(), cmd, program, nil)
		cmdutil.CheckErr(err)
		cmdutil.CheckErr(o.Validate())
		if len(clusters) > 0 {
			o.PreProcessorFn = func() error { return a.addPolicies(cmd, o, clusters) }
		}
		cmdutil.CheckErr(o.Run())
		if o.DryRunStrategy == cmdutil.DryRunNone && ptr.Deref(a.kubectl.PrintFlags.OutputFormat, "") == "" {
			a.reportMade(cmd)
		}
	})
}

// mostMade is for how many policies the note lists the commands that delete them.
const mostMade = 3

// tellMade prints a note that created policies stay when their objects are deleted, and how to delete them.
func (a *applyFlags) reportMade(cmd *cobra.Command) {
	if len(a.made) == 0 {
		return
	}
	what := "the policy that was made stays when the object is deleted, until: "
	if len(a.made) > 1 {
		what = fmt.Sprintf("the %d policies that were made stay when the objects are deleted, until: ", len(a.made))
	}
	how := "flotilla delete " + strings.Join(a.made, "; flotilla delete ")
	if len(a.made) > mostMade {
		how = "flotilla delete, by the names above"
	}
	_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "note: %s%s\n", what, how)
}

// chosen returns the clusters for which policies are created; nil if no flag asks for that.
func (a *applyFlags) chosen(ctx context.Context) ([]string, error) {
	if !a.all && len(a.clusters) == 0 {
		return nil, nil
	}
	known, err := a.fleet.Clusters(ctx)
	if err != nil {
		return nil, fleet.Describe(err)
	}
	if a.all {
		if len(known) == 0 {
			return nil, errors.New("there are no clusters: flotilla join adds one")
		}
		return known, nil
	}
	for _, name := range a.clusters {
		if !slices.Contains(known, name) {
			return nil, fleet.NoClusterAmong(name, known)
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(a.clusters))), nil
}

// addPolicies adds a policy after each object that can be propagated. It returns an error if
// the server would refuse any of the objects.
func (a *applyFlags) addPolicies(cmd *cobra.Command, o *apply.ApplyOptions, clusters []string) error {
	infos, err := o.GetObjects()
	if err != nil {
		return err
	}
	if err := once(infos); err != nil {
		return err
	}
	slices.SortStableFunc(infos, groundFirst)
	var all []*resource.Info
	for _, info := range infos {
		all = append(all, info)
		obj, ok := info.Object.(*unstructured.Unstructured)
		if !ok || !placeable(obj) {
			continue
		}
		policy, err := a.policy(obj, info, clusters)
		if err != nil {
			return err
		}
		all = append(all, policy)
	}
	if err := a.rehearse(cmd, all); err != nil {
		return err
	}
	o.SetObjects(all)
	return nil
}

// once returns an error if an object occurs twice, because it is not known which one is meant.
func once(infos []*resource.Info) error {
	type object struct {
		kind            schema.GroupKind
		namespace, name string
	}
	seen := map[object]*resource.Info{}
	for _, info := range infos {
		key := object{info.Mapping.GroupVersionKind.GroupKind(), info.Namespace, info.Name}
		if other := seen[key]; other != nil && info.Name != "" {
			places := slices.Compact([]string{other.Source, info.Source})
			return fmt.Errorf("%s %s is there twice, in %s: nothing was written, remove one",
				key.kind.Kind, strings.TrimPrefix(key.namespace+"/"+key.name, "/"), strings.Join(places, " and "))
		}
		seen[key] = info
	}
	return nil
}

// groundFirst orders objects that others need, such as namespaces, before the others. As a
// stable sort it keeps the order otherwise.
func groundFirst(a, b *resource.Info) int {
	stands := func(info *resource.Info) int {
		if inventory.StageOf(info.Mapping.GroupVersionKind.GroupKind()) == inventory.Definitions {
			return 0
		}
		return 1
	}
	return stands(a) - stands(b)
}

// placeable reports whether policies propagate an object. Namespaces are created in all
// clusters without a policy.
func placeable(obj *unstructured.Unstructured) bool {
	namespace := obj.GetAPIVersion() == "v1" && obj.GetKind() == "Namespace"
	return !namespace && obj.GetName() != "" && propagation.Propagates(selector.ResourceOf(obj), propagation.SkipRules{})
}

// policy returns the policy for an object, to be applied.
func (a *applyFlags) policy(obj *unstructured.Unstructured, info *resource.Info, clusters []string) (*resource.Info, error) {
	gvk := obj.GroupVersionKind()
	made := policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{
		Namespace: info.Namespace, Name: workv1alpha2.PolicyName(gvk, info.Namespace, info.Name),
	}}
	kind := "PropagationPolicy"
	if info.Namespace == "" {
		kind = "ClusterPropagationPolicy"
	}
	made.TypeMeta = metav1.TypeMeta{APIVersion: policyv1alpha1.GroupVersion.String(), Kind: kind}
	made.Spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: obj.GetAPIVersion(), Kind: gvk.Kind, Namespace: info.Namespace, Name: info.Name}}
	made.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: clusters}
	mapper, err := a.fleet.Factory().ToRESTMapper()
	if err != nil {
		return nil, err
	}
	mapping, err := mapper.RESTMapping(schema.GroupKind{Group: policyv1alpha1.GroupVersion.Group, Kind: kind}, policyv1alpha1.GroupVersion.Version)
	if err != nil {
		return nil, unlessPolicies(err)
	}
	to, err := a.fleet.Factory().UnstructuredClientForMapping(mapping)
	if err != nil {
		return nil, err
	}
	there := resource.NewHelper(to, mapping)
	former := workv1alpha2.FormerPolicyName(gvk, info.Namespace, info.Name)
	if _, err := there.Get(made.Namespace, former); err == nil {
		made.Name = former // keep using the existing one
	} else if _, err := there.Get(made.Namespace, made.Name); apierrors.IsNotFound(err) {
		a.made = append(a.made, strings.ToLower(kind)+" "+made.Name+inNamespaceOf(made.Namespace))
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&made)
	if err != nil {
		return nil, err
	}
	policy := &unstructured.Unstructured{Object: content}
	delete(policy.Object, "status")
	unstructured.RemoveNestedField(policy.Object, "metadata", "creationTimestamp")
	return &resource.Info{Client: to, Mapping: mapping, Namespace: made.Namespace, Name: made.Name, Source: strings.TrimSpace("policy for " + info.Source), Object: policy}, nil
}

func inNamespaceOf(namespace string) string {
	if namespace == "" {
		return ""
	}
	return " -n " + namespace
}

// unlessPolicies replaces an error that policies are unknown by one with the likely cause.
func unlessPolicies(err error) error {
	if meta.IsNoMatchError(err) {
		return errors.New("the server has no policies: is this the control plane of a fleet?")
	}
	return err
}
