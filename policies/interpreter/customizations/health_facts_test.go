package customizations_test

import (
	"testing"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/rulestest"
	"github.com/flotilla-io/flotilla/policies/interpreter"
	"github.com/flotilla-io/flotilla/policies/interpreter/customizations"
)

// TestHealthFacts checks which objects may be moved, which are only shown as not
// ready, and which are as they should be. Work that is queued or starting is
// never moved.
func TestHealthFacts(t *testing.T) {
	const moves, waits, fine = "may be moved", "waits", "fine"
	const (
		volcano  = "batch.volcano.sh/v1alpha1 Job"
		pytorch  = "kubeflow.org/v1 PyTorchJob"
		mpi      = "kubeflow.org/v2beta1 MPIJob"
		workflow = "argoproj.io/v1alpha1 Workflow"
		spark    = "sparkoperator.k8s.io/v1beta2 SparkApplication"
		notebook = "kubeflow.org/v1 Notebook"
		flink    = "flink.apache.org/v1beta1 FlinkDeployment"
		ray      = "ray.io/v1 RayCluster"
		rayJob   = "ray.io/v1 RayJob"
		jobSet   = "jobset.x-k8s.io/v1alpha2 JobSet"
	)
	rows := map[string]struct{ kind, object, want string }{
		"a Volcano job in the queue":        {volcano, `{status: {state: {phase: Pending}}}`, waits},
		"a Volcano job that starts anew":    {volcano, `{status: {state: {phase: Restarting}}}`, waits},
		"a Volcano job that is aborted":     {volcano, `{status: {state: {phase: Aborted}}}`, waits},
		"a Volcano job that is terminating": {volcano, `{status: {state: {phase: Terminating}}}`, waits},
		"a Volcano job that was terminated": {volcano, `{status: {state: {phase: Terminated}}}`, waits},
		"a Volcano job in a new phase":      {volcano, `{status: {state: {phase: Hibernating}}}`, waits},
		"a Volcano job that runs":           {volcano, `{status: {state: {phase: Running}}}`, fine},
		"a Volcano job that completes":      {volcano, `{status: {state: {phase: Completing}}}`, fine},
		"a Volcano job that has failed":     {volcano, `{status: {state: {phase: Failed}}}`, moves},
		"a Volcano job nobody has taken up": {volcano, `{status: {}}`, moves},

		"a training job that was created":       {pytorch, `{status: {conditions: [{type: Created, status: "True"}]}}`, waits},
		"a training job that restarts":          {pytorch, `{status: {conditions: [{type: Created, status: "True"}, {type: Restarting, status: "True"}]}}`, waits},
		"a training job that is held unasked":   {pytorch, `{status: {conditions: [{type: Suspended, status: "True"}]}}`, waits},
		"a training job that is held, as asked": {pytorch, `{spec: {runPolicy: {suspend: true}}, status: {conditions: [{type: Suspended, status: "True"}]}}`, fine},
		"a training job that runs":              {"kubeflow.org/v1 TFJob", `{status: {conditions: [{type: Running, status: "True"}]}}`, fine},
		"a training job that has failed":        {pytorch, `{status: {conditions: [{type: Created, status: "True"}, {type: Failed, status: "True"}]}}`, moves},
		"a training job without conditions":     {pytorch, `{status: {conditions: []}}`, moves},
		"a job over MPI that was created":       {mpi, `{status: {conditions: [{type: Created, status: "True"}]}}`, waits},
		"a job over MPI that has failed":        {mpi, `{status: {conditions: [{type: Failed, status: "True"}]}}`, moves},
		"a job over MPI without conditions":     {mpi, `{status: {}}`, moves},

		"a workflow that is pending":   {workflow, `{status: {phase: Pending}}`, waits},
		"a workflow that has failed":   {workflow, `{status: {phase: Failed}}`, moves},
		"a workflow with an error":     {workflow, `{status: {phase: Error}}`, moves},
		"a workflow without a phase":   {workflow, `{status: {}}`, moves},
		"a workflow that has finished": {workflow, `{status: {phase: Succeeded}}`, fine},

		"a Spark application that is new":               {spark, `{status: {applicationState: {state: ""}}}`, waits},
		"a Spark application that was submitted":        {spark, `{status: {applicationState: {state: SUBMITTED}}}`, waits},
		"a Spark application that is to run anew":       {spark, `{status: {applicationState: {state: PENDING_RERUN}}}`, waits},
		"a Spark application that is being invalidated": {spark, `{status: {applicationState: {state: INVALIDATING}}}`, waits},
		"a Spark application that resumes":              {spark, `{status: {applicationState: {state: RESUMING}}}`, waits},
		"a Spark application that was not submitted":    {spark, `{status: {applicationState: {state: SUBMISSION_FAILED}}}`, waits},
		"a Spark application that is held, as asked":    {spark, `{spec: {suspend: true}, status: {applicationState: {state: SUSPENDED}}}`, fine},
		"a Spark application that has failed":           {spark, `{status: {applicationState: {state: FAILED}}}`, moves},
		"a Spark application without a state":           {spark, `{status: {}}`, moves},

		"a notebook whose container is being created": {notebook, `{status: {containerState: {waiting: {reason: ContainerCreating}}}}`, waits},
		"a notebook that runs and is not ready":       {notebook, `{status: {readyReplicas: 0, containerState: {running: {startedAt: "2026-01-01T00:00:00Z"}}}}`, waits},
		"a notebook that is ready":                    {notebook, `{status: {readyReplicas: 1, containerState: {running: {startedAt: "2026-01-01T00:00:00Z"}}}}`, fine},
		"a notebook that has ended":                   {notebook, `{status: {containerState: {terminated: {exitCode: 0, reason: Completed}}}}`, waits},
		"a notebook that was out of memory":           {notebook, `{status: {containerState: {terminated: {exitCode: 0, reason: OOMKilled}}}}`, moves},
		"a notebook that has ended with an error":     {notebook, `{status: {containerState: {terminated: {exitCode: 1, reason: Error}}}}`, moves},
		"a notebook whose image cannot be pulled":     {notebook, `{status: {containerState: {waiting: {reason: ImagePullBackOff}}}}`, moves},
		"a notebook without a container":              {notebook, `{status: {containerState: {}}}`, moves},
		"a notebook that was stopped":                 {notebook, `{metadata: {annotations: {kubeflow-resource-stopped: now}}, status: {containerState: {}}}`, fine},

		"a Flink job that runs, whatever its manager does": {flink, `{spec: {job: {}}, status: {jobStatus: {state: RUNNING}, jobManagerDeploymentStatus: DEPLOYED_NOT_READY, lifecycleState: UPGRADING}}`, fine},
		"a Flink job that has finished, without a manager": {flink, `{spec: {job: {}}, status: {jobStatus: {state: FINISHED}, jobManagerDeploymentStatus: MISSING}}`, fine},
		"a Flink job that was created":                     {flink, `{spec: {job: {}}, status: {jobStatus: {state: CREATED}, jobManagerDeploymentStatus: DEPLOYING}}`, waits},
		"a Flink job whose image cannot be pulled":         {flink, `{spec: {job: {}}, status: {error: ImagePullBackOff, jobStatus: {state: RECONCILING}}}`, waits},
		"a Flink job that has failed":                      {flink, `{spec: {job: {}}, status: {jobStatus: {state: FAILED}}}`, waits},
		"a Flink job that restarts":                        {flink, `{spec: {job: {}}, status: {jobStatus: {state: RESTARTING}}}`, waits},
		"a Flink job that is suspended, as asked":          {flink, `{spec: {job: {state: suspended}}, status: {jobStatus: {state: SUSPENDED}, lifecycleState: SUSPENDED}}`, fine},
		"a Flink job that is being deployed":               {flink, `{spec: {job: {}}, status: {jobManagerDeploymentStatus: DEPLOYING, lifecycleState: UPGRADING}}`, waits},
		"a Flink session that is ready":                    {flink, `{status: {jobManagerDeploymentStatus: READY, lifecycleState: STABLE}}`, fine},
		"a Flink job that was not deployed":                {flink, `{spec: {job: {}}, status: {jobManagerDeploymentStatus: ERROR}}`, moves},
		"a Flink job that nobody has taken up":             {flink, `{spec: {job: {}}}`, moves},

		"a Ray cluster by its conditions":                {ray, `{status: {conditions: [{type: HeadPodReady, status: "True"}, {type: RayClusterProvisioned, status: "True"}]}}`, fine},
		"a Ray cluster that is being provisioned":        {ray, `{status: {state: ready, conditions: [{type: HeadPodReady, status: "True"}, {type: RayClusterProvisioned, status: "False"}]}}`, waits},
		"a Ray cluster whose head is lost":               {ray, `{status: {state: ready, conditions: [{type: HeadPodReady, status: "False"}, {type: RayClusterProvisioned, status: "True"}]}}`, moves},
		"a Ray cluster whose pods cannot be made":        {ray, `{status: {conditions: [{type: HeadPodReady, status: "True"}, {type: RayClusterProvisioned, status: "True"}, {type: RayClusterReplicaFailure, status: "True"}]}}`, moves},
		"a Ray cluster of an older operator":             {ray, `{status: {state: ready}}`, fine},
		"a Ray cluster of an older operator that failed": {ray, `{status: {state: failed}}`, moves},
		"a Ray cluster that is held unasked":             {ray, `{status: {state: suspended}}`, waits},
		"a Ray cluster that nobody has taken up":         {ray, `{status: {}}`, moves},

		"a Ray job whose cluster starts": {rayJob, `{status: {jobDeploymentStatus: Initializing}}`, waits},
		"a Ray job that is tried again":  {rayJob, `{status: {jobDeploymentStatus: Retrying, jobStatus: FAILED}}`, waits},
		"a Ray job that runs":            {rayJob, `{status: {jobDeploymentStatus: Running, jobStatus: RUNNING}}`, fine},
		"a Ray job that is not valid":    {rayJob, `{status: {jobDeploymentStatus: ValidationFailed}}`, moves},
		"a Ray job that has failed":      {rayJob, `{status: {jobDeploymentStatus: Running, jobStatus: FAILED}}`, moves},
		"a set of jobs that start":       {jobSet, `{spec: {replicatedJobs: [{name: a}]}, status: {replicatedJobsStatus: [{name: a, ready: 0}]}}`, waits},
		"a set of jobs that failed":      {jobSet, `{status: {conditions: [{type: Failed, status: "True"}]}}`, moves},
	}
	know := interpreter.New(customizations.Table())
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			obj := rulestest.Made(t, row.kind, row.object)
			health, err := know.Health(obj)
			if err != nil {
				t.Fatal(err)
			}
			shown, err := know.Shown(obj)
			if err != nil {
				t.Fatal(err)
			}
			got := map[[2]workv1alpha2.ResourceHealth]string{
				{workv1alpha2.ResourceUnhealthy, workv1alpha2.ResourceUnhealthy}: moves,
				{workv1alpha2.ResourceHealthy, workv1alpha2.ResourceUnhealthy}:   waits,
				{workv1alpha2.ResourceHealthy, workv1alpha2.ResourceHealthy}:     fine,
			}[[2]workv1alpha2.ResourceHealth{health, shown}]
			if got != row.want {
				t.Errorf("%s, want %s", got, row.want)
			}
		})
	}
}
