package customizations

import (
	"strconv"

	"github.com/flotilla-io/flotilla/policies/interpreter/customizations/words"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

// argo returns the rules for the kinds of Argo Workflows, Rollouts and CD.
func argo() kinds.Table {
	const v1alpha1 = "argoproj.io/v1alpha1"
	return kinds.Table{
		words.Kind(v1alpha1, "Workflow"):       workflow(),
		words.Kind(v1alpha1, "Rollout"):        rollout(),
		words.Kind(v1alpha1, "Application"):    application(),
		words.Kind(v1alpha1, "ApplicationSet"): applicationSet(),
	}
}

const argoVersion = "argoproj.io/v1alpha1"

func workflow() kinds.Rules {
	return words.Graded(kinds.Rules{
		// A Workflow has no replicas of its own: the pods that may run at once are
		// the closest thing to them.
		Replicas: func(obj kinds.Object) (int32, *words.Needed, error) {
			n, err := rules.Count(obj.Object, "spec", "parallelism")
			if err != nil {
				return 0, nil, err
			}
			if rules.Value(obj.Object, "spec", "parallelism") == nil {
				n = 1
			}
			// The containers are in the templates of the steps; only these fields
			// hold for every pod of the workflow.
			whole := map[string]any{}
			for _, field := range []string{"nodeSelector", "tolerations", "affinity"} {
				if v := rules.Value(obj.Object, "spec", field); v != nil {
					whole[field] = v
				}
			}
			req, err := words.Requirements(obj.GetNamespace(), whole)
			return n, req, err
		},
		Revise: rules.ReviseAt("spec", "parallelism"),
		// argo suspend sets this field in the member; a workflow that was suspended
		// there stays so.
		Retain:  words.Leave("spec.suspend"),
		Retains: words.Has("spec.suspend"),
		Reflect: rules.Reflect("phase", "message", "startedAt", "finishedAt", "conditions"),
		Aggregate: rules.Aggregate(rules.Worst("phase", "Pending", "Error", "Failed", rules.Others, "Pending", "Running", "Succeeded"), rules.Quote("message"),
			rules.EveryCondition("PodRunning", "MetricsError", "SpecWarning", "SpecError",
				"ArtifactGCError"), rules.Earliest("startedAt"), rules.Ended("finishedAt")),
		Dependencies: workflowNeeds,
	}, words.ByWord("status.phase", []string{"Error", "Failed"}, []string{"Running", "Succeeded"}))
}

func workflowNeeds(obj kinds.Object) ([]kinds.Dependency, error) {
	const templates = "spec.templates.*."
	return ownVolumeClaims(words.Needs(
		words.PodsOf(words.PodOf{
			Containers: []string{
				templates + "container", templates + "script", templates + "initContainers.*", templates + "sidecars.*",
				templates + "containerSet.containers.*",
			},
			Volumes: []string{"spec.volumes.*", templates + "volumes.*"},
		}),
		words.ServiceAccounts("spec.serviceAccountName", "spec.executor.serviceAccountName", templates+"serviceAccountName",
			templates+"executor.serviceAccountName"),
		words.Secrets("spec.imagePullSecrets.*.name",
			templates+"inputs.artifacts.*.*.*Secret.name", templates+"outputs.artifacts.*.*.*Secret.name",
			templates+"archiveLocation.*.*Secret.name", "spec.arguments.artifacts.*.*.*Secret.name"),
		words.ConfigMaps("spec.artifactRepositoryRef.configMap",
			"spec.arguments.parameters.*.valueFrom.configMapKeyRef.name", templates+"inputs.parameters.*.valueFrom.configMapKeyRef.name",
			"spec.synchronization.semaphore.configMapKeyRef.name", templates+"synchronization.semaphore.configMapKeyRef.name"),
		templatesOf("WorkflowTemplate", "name", "spec.workflowTemplateRef", templates+"steps.*.*.templateRef",
			templates+"dag.tasks.*.templateRef"),
	))(obj)
}

// templatesOf returns a rule that finds the templates of Argo to which the
// references at the paths refer. nameField is the field of a reference that holds
// the template's name. A reference with clusterScope means the cluster-scoped
// kind.
func templatesOf(kindName, nameField string, paths ...string) words.Need {
	return func(obj kinds.Object) ([]kinds.Dependency, error) {
		own, shared := rules.Needs{Namespace: obj.GetNamespace()}, rules.Needs{}
		for _, path := range paths {
			for _, ref := range words.Objects(obj.Object, path) {
				if rules.Bool(ref, "clusterScope") {
					shared.AddOf(argoVersion, "Cluster"+kindName, rules.Text(ref, nameField))
				} else {
					own.AddOf(argoVersion, kindName, rules.Text(ref, nameField))
				}
			}
		}
		return rules.Union(own.Sorted(), shared.Sorted()), nil
	}
}

func rollout() kinds.Rules {
	counts := []string{"replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "HPAReplicas"}
	return kinds.Rules{
		Replicas: words.Replicas("spec.replicas", 1, "spec.template"),
		Revise:   rules.ReviseAt("spec", "replicas"),
		Retain:   rules.RetainReplicas,
		Retains:  rules.RetainsReplicas,
		Reflect:  reflectRollout(append(counts, "phase", "message", "conditions", "stableRS", "currentPodHash", "selector")...),
		Health:   words.All(observedText, words.Word("status.phase", "Healthy")),
		Aggregate: rules.Aggregate(rules.Sum(counts...),
			rules.Worst("phase", "Progressing", "Degraded", rules.Others, "Paused", "Progressing", "Healthy"), rules.Quote("message"),
			rules.EveryCondition("InvalidSpec"), rules.Same("stableRS", "currentPodHash", "selector"), observeText),
		Dependencies: words.Needs(
			words.Pods("spec.template.spec"),
			words.Refs("apps/v1", "Deployment", "spec.workloadRef"),
			words.Named("v1", "Service", "spec.strategy.canary.canaryService", "spec.strategy.canary.stableService",
				"spec.strategy.blueGreen.activeService", "spec.strategy.blueGreen.previewService"),
			templatesOf("AnalysisTemplate", "templateName", "spec.strategy.canary.steps.*.analysis.templates.*",
				"spec.strategy.canary.analysis.templates.*",
				"spec.strategy.canary.steps.*.experiment.analyses.*",
				"spec.strategy.blueGreen.prePromotionAnalysis.templates.*", "spec.strategy.blueGreen.postPromotionAnalysis.templates.*"),
		),
	}
}

// generationText returns the generation that the controller of a Rollout has
// observed, which the Rollout holds as text; zero where it is no number.
func generationText(obj kinds.Object) int64 {
	n, err := strconv.ParseInt(rules.Text(obj.Object, "status", "observedGeneration"), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func observedText(obj kinds.Object) (bool, error) {
	return generationText(obj) == obj.GetGeneration(), nil
}

// reflectRollout reports the fields, and the observed generation as a number, as
// it is for all other kinds.
func reflectRollout(fields ...string) func(kinds.Object) (map[string]any, error) {
	tracked := rules.ReflectTracked(fields...)
	return func(observed kinds.Object) (map[string]any, error) {
		status, err := tracked(observed)
		if status != nil {
			status["observedGeneration"] = generationText(observed)
		}
		return status, err
	}
}

// observeText is rules.Observe for a kind whose observed generation is text.
func observeText(status map[string]any, r rules.Reports) {
	if r.Template.GetGeneration() > 0 && rules.Observed(r) {
		status["observedGeneration"] = strconv.FormatInt(r.Template.GetGeneration(), 10)
	}
}

// application returns the rules for Argo CD's Application. Its status does not
// say which spec it is about, so the generation is not tracked; and the time of
// the last comparison is left out, as it changes without anything having
// happened.
func application() kinds.Rules {
	return kinds.Rules{
		Reflect: func(observed kinds.Object) (map[string]any, error) {
			status := rules.Object(observed.Object, "status")
			if status == nil {
				return nil, nil
			}
			out := map[string]any{}
			for field, parts := range map[string][]string{
				"health": {"status", "message"}, "sync": {"status", "revision", "revisions"}, "operationState": {"phase", "message"},
			} {
				if picked := words.Pick(rules.Object(status, field), parts...); len(picked) > 0 {
					out[field] = picked
				}
			}
			if c := rules.List(status, "conditions"); c != nil {
				out["conditions"] = c
			}
			return out, nil
		},
		Health: words.All(words.Word("status.health.status", "Healthy"), words.Word("status.sync.status", "Synced"),
			words.Word("status.operationState.phase", "", "Succeeded", "Running")),
		Aggregate: rules.Aggregate(
			rules.FromWorst("health", "health.status", "Unknown", "Unknown", "Degraded", "Missing", rules.Others, "Progressing", "Suspended", "Healthy"),
			rules.FromWorst("sync", "sync.status", "Unknown", "OutOfSync", "Unknown", rules.Others, "Synced"),
			rules.Collect("conditions"), rules.Shorten("conditions", rules.MostConditions)),
		Dependencies: words.Except("default", words.Named(argoVersion, "AppProject", "spec.project")),
	}
}

func applicationSet() kinds.Rules {
	return kinds.Rules{
		Reflect:   rules.ReflectTracked("conditions"),
		Health:    words.All(words.IsTrue("ResourcesUpToDate"), words.NotTrue("ErrorOccurred")),
		Aggregate: rules.Aggregate(rules.EveryCondition("ErrorOccurred", "RolloutProgressing")),
	}
}
