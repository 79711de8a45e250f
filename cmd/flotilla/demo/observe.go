package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// target is what the demo watches: one Kustomization and its source, in one
// namespace, on one commit.
type target struct {
	namespace, source, apply string
	// appNamespace is where the templates are.
	appNamespace string
	clusters     []string
	commit       string
}

// observe reads from the control plane everything that the table shows.
func observe(ctx context.Context, hub client.Reader, on target) (View, error) {
	view := View{Clusters: on.clusters}
	var source sourcev1.GitRepository
	if err := hub.Get(ctx, client.ObjectKey{Namespace: on.namespace, Name: on.source}, &source); err != nil {
		return view, fmt.Errorf("look at the GitRepository: %w", err)
	}
	var apply kustomizev1.Kustomization
	if err := hub.Get(ctx, client.ObjectKey{Namespace: on.namespace, Name: on.apply}, &apply); err != nil {
		return view, fmt.Errorf("look at the Kustomization: %w", err)
	}
	var bindings workv1alpha2.ResourceBindingList
	if err := hub.List(ctx, &bindings, client.InNamespace(on.appNamespace)); err != nil {
		return view, fmt.Errorf("look at the bindings: %w", err)
	}
	var reports gitopsv1alpha1.CommitStatusList
	if err := hub.List(ctx, &reports, client.InNamespace(on.namespace)); err != nil {
		return view, fmt.Errorf("look at the commit statuses: %w", err)
	}
	view.Fetch = fetchStage(&source, on.commit)
	view.Apply = applyStage(&apply, on.commit)
	view.Place, view.Rows = placeStage(bindings.Items)
	view.Report = reportStage(reports.Items, on.commit)
	return view, nil
}

func fetchStage(source *sourcev1.GitRepository, commit string) Stage {
	if failure, failed := notReady(source.Status.Conditions); failed {
		return Stage{State: Failed, Text: failure}
	}
	artifact := source.Status.Artifact
	if artifact == nil || !strings.HasSuffix(artifact.Revision, commit) {
		return Stage{Text: "waiting for commit " + short(commit)}
	}
	return Stage{State: Done, Text: "commit " + short(commit) + " of " + source.Spec.URL}
}

func applyStage(apply *kustomizev1.Kustomization, commit string) Stage {
	if !strings.HasSuffix(apply.Status.LastAppliedRevision, commit) && !strings.HasSuffix(apply.Status.LastAttemptedRevision, commit) {
		return Stage{}
	}
	if failure, failed := notReady(apply.Status.Conditions); failed {
		return Stage{State: Failed, Text: failure}
	}
	if apply.Status.Inventory == nil || len(apply.Status.Inventory.Entries) == 0 {
		return Stage{Text: "building"}
	}
	return Stage{State: Done, Text: fmt.Sprintf("%d objects, templates and policies", len(apply.Status.Inventory.Entries))}
}

// notReady returns the reason and message of a Ready condition with the status False.
func notReady(conditions []metav1.Condition) (string, bool) {
	ready := apimeta.FindStatusCondition(conditions, "Ready")
	if ready == nil || ready.Status != metav1.ConditionFalse {
		return "", false
	}
	return ready.Reason + ": " + ready.Message, true
}

func placeStage(bindings []workv1alpha2.ResourceBinding) (Stage, []Row) {
	rows := make([]Row, 0, len(bindings))
	placed := 0
	for i := range bindings {
		b := &bindings[i]
		if len(b.Spec.Clusters) > 0 {
			placed++
		}
		rows = append(rows, rowOf(b))
	}
	sortRows(rows)
	stage := Stage{}
	if len(bindings) > 0 {
		stage.Text = fmt.Sprintf("%d of %d placed by policy", placed, len(bindings))
	}
	if len(bindings) > 0 && placed == len(bindings) {
		stage.State = Done
	}
	return stage, rows
}

// rowOf returns the row of a binding: what each of its clusters should run, and runs.
func rowOf(b *workv1alpha2.ResourceBinding) Row {
	row := Row{Object: b.Spec.Resource.Kind + "/" + b.Spec.Resource.Name, Cells: map[string]Cell{}}
	for _, cluster := range b.Spec.Clusters {
		i := slices.IndexFunc(b.Status.AggregatedStatus, func(item workv1alpha2.AggregatedStatusItem) bool {
			return item.ClusterName == cluster.Name
		})
		cell := Cell{}
		ready := int32(0)
		if i >= 0 {
			item := b.Status.AggregatedStatus[i]
			ready = readyReplicas(item)
			if item.Applied && item.Health == workv1alpha2.ResourceHealthy && ready >= cluster.Replicas {
				cell.State = Done
			}
		}
		if cluster.Replicas > 0 {
			cell.Text = fmt.Sprintf("%d/%d", ready, cluster.Replicas)
		}
		row.Cells[cluster.Name] = cell
	}
	return row
}

func readyReplicas(item workv1alpha2.AggregatedStatusItem) int32 {
	var status struct {
		ReadyReplicas int32 `json:"readyReplicas"`
	}
	if item.Status == nil || json.Unmarshal(item.Status.Raw, &status) != nil {
		return 0
	}
	return status.ReadyReplicas
}

// reportStage returns what was posted to the commit of the Kustomization. It is done when all posted statuses are
// successful, that of the whole source included.
func reportStage(reports []gitopsv1alpha1.CommitStatus, commit string) Stage {
	var stage Stage
	done := len(reports) > 0
	for i := range reports {
		posted := reports[i].Status.Posted
		current := posted != nil && posted.Commit == commit
		done = done && current && posted.State == gitopsv1alpha1.CommitSuccess
		if !current || reports[i].Spec.KustomizationRef == nil {
			continue
		}
		stage.Text = fmt.Sprintf("%s: %s", posted.State, posted.Description)
		if posted.State == gitopsv1alpha1.CommitFailure || posted.State == gitopsv1alpha1.CommitError {
			stage.State = Failed
		}
	}
	if done {
		stage.State = Done
	}
	return stage
}

func short(commit string) string { return commit[:min(8, len(commit))] }
