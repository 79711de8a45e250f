package overview

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/lineage"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/listing"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/remains"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/standing"
	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

func newTreeCommand(f *fleet.Flags) *cobra.Command {
	var out output
	var compact bool
	cmd := &cobra.Command{
		Use:   "tree KIND/NAME",
		Short: "Show what hangs below an object: templates, bindings, Works, members' objects",
		Long: `Show what hangs below a Kustomization or a template: what it applies, where that
was placed, and what each cluster has of it, as the clusters last reported.`,
		Example: `  flotilla tree kustomization/web
  flotilla tree deployment/web -n shop --compact
  flotilla tree ks/web -o json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			kind, name, err := object(args)
			if err != nil {
				return err
			}
			root, notes, err := grow(cmd.Context(), f, kind, name)
			if err != nil {
				return fleet.Describe(err)
			}
			if compact {
				root = root.Compact()
			}
			return printTree(cmd.OutOrStdout(), &out, root, notes)
		},
	}
	out.addTo(cmd, asJSON, asYAML)
	cmd.ValidArgsFunction = f.CompleteObject()
	cmd.Flags().BoolVar(&compact, "compact", false, "leave bindings and Works out")
	return cmd
}

func printTree(w io.Writer, out *output, root lineage.Node, notes []string) error {
	value := struct {
		APIVersion string       `json:"apiVersion"`
		Kind       string       `json:"kind"`
		Root       lineage.Node `json:"root"`
		Notes      []string     `json:"notes,omitempty"`
	}{situation.APIVersion, "ObjectTree", root, notes}
	if done, err := out.structured(w, value); done {
		return err
	}
	if err := root.Draw(w, lineage.TreeOptions{ASCII: os.Getenv("TERM") == "dumb"}); err != nil {
		return err
	}
	for _, note := range notes {
		if _, err := fmt.Fprintf(w, "\n%s\n", note); err != nil {
			return err
		}
	}
	return nil
}

// grow reads the tree of an object. The notes list what the user may not read.
func grow(ctx context.Context, f *fleet.Flags, kind, name string) (root lineage.Node, notes []string, err error) {
	hub, err := listing.Hub(f)
	if err != nil {
		return root, nil, err
	}
	obj, err := lookup(ctx, f, "", kind, name, "-n names another namespace; in members: flotilla trace KIND/NAME --cluster CLUSTER")
	if err != nil {
		return root, nil, err
	}
	g := &grower{reader: reader{hub}, met: map[client.ObjectKey]bool{}}
	gk := obj.GroupVersionKind().GroupKind()
	switch {
	case gk == kustomizev1.GroupVersion.WithKind(kustomizev1.KustomizationKind).GroupKind():
		var ks kustomizev1.Kustomization
		if err := into(obj, &ks); err != nil {
			return root, nil, err
		}
		root, err = g.kustomization(ctx, &ks)
		return root, g.notes(), err
	case gk.Group == workv1alpha2.GroupVersion.Group:
		t := &tracer{reader: g.reader}
		template, err := t.carried(ctx, obj)
		if err != nil {
			return root, nil, err
		}
		if template == nil {
			return lineage.Node{Object: objectOf(obj, "")}, t.out.Notes, nil
		}
		obj = template
	}
	return g.single(ctx, obj)
}

// single reads the tree of one template, and says why it ends there.
func (g *grower) single(ctx context.Context, template *unstructured.Unstructured) (lineage.Node, []string, error) {
	nodes, err := g.templates(ctx, []inventory.Entry{{ID: inventory.IDOf(template), Version: template.GroupVersionKind().Version}})
	if err != nil {
		return lineage.Node{}, nil, err
	}
	notes := g.notes()
	if len(nodes[0].Children)+len(notes) == 0 && template.GetKind() != "Namespace" {
		notes = append(notes, g.uncarried(ctx, template))
	}
	return nodes[0], notes, nil
}

// grower reads trees. met prevents a Kustomization below itself from being read again.
type grower struct {
	reader
	met map[client.ObjectKey]bool
	// unread is what the user may not read, in the order in which that was found.
	unread []string
}

// may returns false, and records what, if the error means that the user may not read something.
func (g *grower) may(err error, what string) bool {
	if !apierrors.IsForbidden(err) {
		return true
	}
	if !slices.Contains(g.unread, what) {
		g.unread = append(g.unread, what)
	}
	return false
}

// notes returns what a tree lacks; nil if it is complete.
func (g *grower) notes() []string {
	if len(g.unread) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("You may not read %s: what hangs below is left out, or shown as bindings tell of it.", strings.Join(g.unread, ", "))}
}

// kustomization reads the tree of a Kustomization: the objects in its inventory.
func (g *grower) kustomization(ctx context.Context, ks *kustomizev1.Kustomization) (lineage.Node, error) {
	g.met[client.ObjectKeyFromObject(ks)] = true
	s := situation.NewSurvey(ks.CreationTimestamp.Time, "")
	s.Kustomization(ks)
	judged := s.Fleet().Kustomizations[0]
	node := lineage.Node{
		Object: lineage.Object{APIVersion: kustomizev1.GroupVersion.String(), Kind: kustomizev1.KustomizationKind, Namespace: ks.Namespace, Name: ks.Name},
		State:  judged.State, Text: excerpt.ShortRevision(judged.Revision),
	}
	if judged.State != situation.Ready {
		node.Text += "  " + standing.Attempted(ks, judged.Message)
	}
	node.Text = strings.TrimSuffix(node.Text+"  "+standing.Elsewhere(ks), "  ")
	entries, err := inventory.Here(ks)
	if err != nil {
		return node, fmt.Errorf("read the inventory of Kustomization %s/%s: %w", ks.Namespace, ks.Name, err)
	}
	node.Children, err = g.templates(ctx, entries)
	return node, err
}

// templates reads the trees of templates, in the order of the entries.
func (g *grower) templates(ctx context.Context, entries []inventory.Entry) ([]lineage.Node, error) {
	bindings, err := g.bindings(ctx, entries)
	if err != nil {
		return nil, err
	}
	all := make([]workv1alpha2.Binding, 0, len(bindings))
	for _, b := range bindings {
		all = append(all, b)
	}
	works, err := g.worksOf(ctx, all)
	blind := !g.may(err, unreadWorks)
	if err != nil && !blind {
		return nil, err
	}
	silent, err := g.silences(ctx)
	if err != nil {
		return nil, err
	}
	nodes := make([]lineage.Node, 0, len(entries))
	for _, e := range entries {
		node := lineage.Node{Object: lineage.Object{
			APIVersion: schema.GroupVersion{Group: e.ID.GroupKind.Group, Version: e.Version}.String(),
			Kind:       e.ID.GroupKind.Kind, Namespace: e.ID.Namespace, Name: e.ID.Name,
		}}
		switch b := bindings[e.ID]; {
		case b != nil && blind:
			grown(&node, rollup.PartOf(g.template(ctx, b, len(entries)), b, nil, silent), b, reportedNodes(node.Object, b, silent), silent)
		case b != nil:
			mine := append([]*workv1alpha1.Work{}, works[b.GetLabels()[idLabel(b)]]...)
			grown(&node, rollup.PartOf(g.template(ctx, b, len(entries)), b, mine, silent), b, worksNodes(mine, silent), silent)
		case e.ID.GroupKind == (schema.GroupKind{Kind: "Namespace"}):
			carriers, err := remains.Works(ctx, g.hub, "Namespace", "", e.ID.Name)
			if err != nil && g.may(err, unreadWorks) {
				return nil, err
			}
			node.Children = worksNodes(carriers, silent)
		case e.ID.GroupKind == kustomizev1.GroupVersion.WithKind(kustomizev1.KustomizationKind).GroupKind():
			if node, err = g.nested(ctx, node); err != nil {
				return nil, err
			}
		}
		nodes = append(nodes, node)
	}
	return nodes, nil
}

// template reads the template of a binding, to compare the binding with its last change. It returns
// nil if there are many, which are not read one by one, or on an error.
func (g *grower) template(ctx context.Context, b workv1alpha2.Binding, of int) *unstructured.Unstructured {
	if of > fewObjects {
		return nil
	}
	ref := b.BindingSpec().Resource
	template, err := g.get(ctx, ref.APIVersion, ref.Kind, ref.Namespace, ref.Name)
	if err != nil {
		return nil
	}
	return template
}

// nested reads the tree of a Kustomization that another applies.
func (g *grower) nested(ctx context.Context, node lineage.Node) (lineage.Node, error) {
	key := client.ObjectKey{Namespace: node.Namespace, Name: node.Name}
	if g.met[key] {
		node.Text = "see above"
		return node, nil
	}
	var ks kustomizev1.Kustomization
	if err := g.hub.Get(ctx, key, &ks); err != nil {
		if !g.may(err, "Kustomizations in namespace "+node.Namespace) {
			return node, nil
		}
		return node, client.IgnoreNotFound(err)
	}
	return g.kustomization(ctx, &ks)
}

// fewObjects is up to how many bindings are read one by one; more are listed.
const fewObjects = 5

// bindings returns the bindings of the entries.
func (g *grower) bindings(ctx context.Context, entries []inventory.Entry) (map[inventory.ID]workv1alpha2.Binding, error) {
	out := map[inventory.ID]workv1alpha2.Binding{}
	if len(entries) <= fewObjects {
		for _, e := range entries {
			obj := &unstructured.Unstructured{}
			obj.SetGroupVersionKind(e.ID.GroupKind.WithVersion(e.Version))
			obj.SetNamespace(e.ID.Namespace)
			obj.SetName(e.ID.Name)
			b, err := g.binding(ctx, obj)
			switch {
			case !g.may(err, unreadBindings(e.ID.Namespace)):
			case err != nil:
				return nil, err
			case b != nil:
				out[e.ID] = b
			}
		}
		return out, nil
	}
	var namespaces []string
	for _, e := range entries {
		namespaces = append(namespaces, e.ID.Namespace)
	}
	slices.Sort(namespaces)
	for _, ns := range slices.Compact(namespaces) {
		read := listing.Each(ctx, g.hub, &workv1alpha2.ResourceBindingList{}, func(b *workv1alpha2.ResourceBinding) { out[templateID(b)] = b }, client.InNamespace(ns))
		if ns == "" {
			read = listing.Each(ctx, g.hub, &workv1alpha2.ClusterResourceBindingList{}, func(b *workv1alpha2.ClusterResourceBinding) { out[templateID(b)] = b })
		}
		if err := read(); err != nil && g.may(err, unreadBindings(ns)) {
			return nil, err
		}
	}
	listed := map[inventory.ID]bool{}
	for _, e := range entries {
		listed[e.ID] = true
	}
	for id := range out {
		if !listed[id] {
			delete(out, id)
		}
	}
	return out, nil
}

const unreadWorks = "Works"

// unreadBindings returns the words for the bindings in a namespace, or for those of cluster-scoped
// templates.
func unreadBindings(namespace string) string {
	if namespace == "" {
		return "ClusterResourceBindings"
	}
	return "ResourceBindings in namespace " + namespace
}

func templateID(b workv1alpha2.Binding) inventory.ID {
	ref := b.BindingSpec().Resource
	return inventory.ID{Namespace: ref.Namespace, Name: ref.Name, GroupKind: schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind()}
}

// grown adds a binding, with the nodes below it, to the node of a template. part is the state of the
// template. silent is nil if it is not known.
func grown(node *lineage.Node, part rollup.Part, b workv1alpha2.Binding, below []lineage.Node, silent rollup.Silences) {
	kind := workv1alpha2.ResourceKindResourceBinding
	if b.GetNamespace() == "" {
		kind = workv1alpha2.ResourceKindClusterResourceBinding
	}
	node.Children = []lineage.Node{{
		Object:   lineage.Object{APIVersion: workv1alpha2.GroupVersion.String(), Kind: kind, Namespace: b.GetNamespace(), Name: b.GetName()},
		Text:     lineage.Placed(b, below),
		Children: below,
	}}
	if part.State != rollup.Healthy {
		node.State, node.Text = states[part.State], part.Reason
		return
	}
	judged(node, part, silent == nil)
	switch {
	case part.Fault != "":
		node.Text += ": " + part.Fault
		if node.State == situation.Ready {
			node.State = situation.Progressing
		}
	case rollup.Released(b):
		node.Text += ": no policy carries it: its edits stay on the control plane"
	}
}

// judged sets, for a placed template, how many of its clusters have it, and the problem of the first
// of the others, with those that have the same message.
func judged(node *lineage.Node, part rollup.Part, secondhand bool) {
	node.State = situation.Ready
	ready, wrong := 0, ""
	var kept, unwell []string
	for _, c := range part.Clusters {
		if c.KeptBack() {
			kept = append(kept, c.Name)
		}
		if c.State == rollup.Healthy {
			ready++
		}
		if c.State == rollup.Healthy || c.Reason == rollup.Suspended {
			continue
		}
		if states[c.State] == situation.Failed || node.State == situation.Ready {
			node.State = states[c.State]
		}
		if wrong = cmp.Or(wrong, c.Reason); c.Reason == wrong {
			unwell = append(unwell, c.Name)
		}
	}
	node.Text = fmt.Sprintf("%d/%d clusters", ready, len(part.Clusters))
	if secondhand {
		node.Text += ", " + rollup.AsReported
	}
	if len(kept) > 0 {
		node.Text += ": dispatching is suspended, an older version, or nothing, may run in " + strings.Join(kept, ", ")
	}
	if len(kept) > 0 && node.State == situation.Ready {
		node.State = situation.Suspended
	}
	if len(unwell) > 0 && part.Fault == "" {
		node.Text += ": " + nameSome(unwell) + ": " + wrong
	}
}

// nameSome lists the first of several names.
func nameSome(names []string) string {
	const most = 3
	return excerpt.Names(names, most)
}

// worksNodes returns nodes for Works, with the objects that they apply in members.
func worksNodes(works []*workv1alpha1.Work, silent rollup.Silences) []lineage.Node {
	var out []lineage.Node
	for _, w := range works {
		cluster, ok := workv1alpha2.ClusterOfExecutionNamespace(w.Namespace)
		if !ok {
			continue
		}
		state, message := rollup.OfWork(w)
		node := lineage.Node{
			Object: lineage.Object{APIVersion: workv1alpha1.GroupVersion.String(), Kind: workv1alpha1.ResourceKindWork, Namespace: w.Namespace, Name: w.Name},
			State:  states[state], Text: message,
		}
		text := memberText(w)
		if s, ok := silent[cluster]; ok {
			node.State, text = situation.Unknown, s.String()+"; last heard: "+text
			if message == rollup.Goes {
				node.Text = goesLater
			}
		}
		if manifest, err := manifestOf(w); err == nil {
			node.Children = []lineage.Node{{Object: objectOf(manifest, cluster), Text: text}}
		}
		out = append(out, node)
	}
	return out
}

// reportedNodes returns nodes for the objects in members from the binding's status, for users who may
// not read Works.
func reportedNodes(template lineage.Object, b workv1alpha2.Binding, silent rollup.Silences) []lineage.Node {
	items := b.BindingStatus().AggregatedStatus
	var out []lineage.Node
	for _, target := range plan.Targets(plan.SpecOf(b)) {
		node := lineage.Node{Object: template, Text: "nothing reported yet"}
		node.Cluster = target.Name
		for i := range items {
			if items[i].ClusterName == target.Name {
				node.Text = reportedText(templateID(b).GroupKind, &items[i])
			}
		}
		if s, ok := silent[target.Name]; ok {
			node.State, node.Text = situation.Unknown, s.String()+"; last heard: "+node.Text
		}
		out = append(out, node)
	}
	return out
}

// reportedText returns the text about one cluster from a binding's status.
func reportedText(kind schema.GroupKind, item *workv1alpha2.AggregatedStatusItem) string {
	health := rollup.HealthText(kind, item.Health, item.Status)
	switch {
	case item.Applied && item.Drift != "":
		return strings.TrimPrefix(health+"; ", "; ") + rollup.Strayed + item.Drift
	case !item.Applied:
		return strings.TrimSuffix("not applied: "+item.AppliedMessage, ": ")
	case health == "":
		return "applied"
	default:
		return health
	}
}

// memberText returns the text about what a member last reported about an object.
func memberText(w *workv1alpha1.Work) string {
	applied := apimeta.IsStatusConditionTrue(w.Status.Conditions, workv1alpha1.WorkApplied)
	drift := rollup.DriftOf(w)
	switch health := healthOf(w); {
	case !applied:
		return "not applied"
	case drift != "" && !rollup.Behind(w):
		return strings.TrimPrefix(health+"; ", "; ") + rollup.Strayed + drift
	case rollup.Behind(w):
		return strings.TrimSuffix("latest version not applied yet; before: "+health, "; before: ")
	case health == "":
		return "applied"
	default:
		return health
	}
}
