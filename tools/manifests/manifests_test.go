package manifests

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	trainer "github.com/kubeflow/trainer/v2/pkg/apis/trainer/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// mpiJob is an MPIJob of the MPI Operator, version v2beta1, as its documentation has it.
type mpiJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		SlotsPerWorker         *int32 `json:"slotsPerWorker"`
		RunLauncherAsWorker    *bool  `json:"runLauncherAsWorker"`
		SSHAuthMountPath       string `json:"sshAuthMountPath"`
		LauncherCreationPolicy string `json:"launcherCreationPolicy"`
		MPIImplementation      string `json:"mpiImplementation"`
		RunPolicy              struct {
			CleanPodPolicy          string `json:"cleanPodPolicy"`
			TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished"`
			ActiveDeadlineSeconds   *int64 `json:"activeDeadlineSeconds"`
			BackoffLimit            *int32 `json:"backoffLimit"`
			Suspend                 *bool  `json:"suspend"`
		} `json:"runPolicy"`
		MPIReplicaSpecs map[string]struct {
			Replicas      *int32                 `json:"replicas"`
			RestartPolicy string                 `json:"restartPolicy"`
			Template      corev1.PodTemplateSpec `json:"template"`
		} `json:"mpiReplicaSpecs"`
	} `json:"spec"`
}

// read decodes the i-th document of a file; a key that the type does not have is an error.
func read(t *testing.T, path string, i int, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../deploy/kubernetes", path))
	if err != nil {
		t.Fatal(err)
	}
	docs := bytes.Split(text, []byte("\n---\n"))
	if i >= len(docs) {
		t.Fatalf("%s: %d documents", path, len(docs))
	}
	if err := yaml.UnmarshalStrict(docs[i], into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

func TestMPIJob(t *testing.T) {
	var j mpiJob
	read(t, "mpijob.yaml", 0, &j)
	if j.APIVersion != "kubeflow.org/v2beta1" || j.Kind != "MPIJob" {
		t.Errorf("%s %s", j.APIVersion, j.Kind)
	}
	s := j.Spec
	if !slices.Contains([]string{"OpenMPI", "Intel", "MPICH"}, s.MPIImplementation) || !slices.Contains([]string{"AtStartup", "WaitForWorkersReady"}, s.LauncherCreationPolicy) ||
		!slices.Contains([]string{"None", "Running", "All"}, s.RunPolicy.CleanPodPolicy) {
		t.Errorf("%+v", s)
	}
	launcher, worker := s.MPIReplicaSpecs["Launcher"], s.MPIReplicaSpecs["Worker"]
	if len(s.MPIReplicaSpecs) != 2 || launcher.Replicas == nil || *launcher.Replicas != 1 {
		t.Fatal("want one Launcher, and Workers")
	}
	ranks(t, append(slices.Clone(launcher.Template.Spec.Containers[0].Command), launcher.Template.Spec.Containers[0].Args...), int(*worker.Replicas**s.SlotsPerWorker))
	volumes(t, worker.Template.Spec)
}

func TestTrainer(t *testing.T) {
	var r trainer.TrainingRuntime
	read(t, "trainer.yaml", 0, &r)
	var j trainer.TrainJob
	read(t, "trainer.yaml", 1, &j)
	if r.Kind != trainer.TrainingRuntimeKind || j.Kind != trainer.TrainJobKind || r.APIVersion != trainer.GroupVersion.String() || j.APIVersion != r.APIVersion {
		t.Errorf("%s %s, %s %s", r.APIVersion, r.Kind, j.APIVersion, j.Kind)
	}
	if j.Spec.RuntimeRef.Name != r.Name || *j.Spec.RuntimeRef.Kind != r.Kind || *j.Spec.Trainer.NumNodes != *r.Spec.MLPolicy.NumNodes {
		t.Errorf("the job is on another runtime: %+v", j.Spec.RuntimeRef)
	}
	ranks(t, j.Spec.Trainer.Command, int(*r.Spec.MLPolicy.NumNodes**r.Spec.MLPolicy.MPI.NumProcPerNode))
	names := []string{}
	for _, job := range r.Spec.Template.Spec.ReplicatedJobs {
		names = append(names, job.Name)
		volumes(t, job.Template.Spec.Template.Spec)
	}
	if !slices.Equal(names, []string{"launcher", "node"}) {
		t.Errorf("jobs %v", names)
	}
}

// ranks: mpirun starts as many as there are slots, and each trains through MPI.
func ranks(t *testing.T, command []string, slots int) {
	t.Helper()
	line := strings.Join(command, " ")
	want := regexp.MustCompile(`^mpirun -n (\d+) triax train \S+\.toml .*--ranks mpi`).FindStringSubmatch(line)
	if want == nil {
		t.Fatalf("command %q", line)
	}
	if want[1] != "16" || slots != 16 {
		t.Errorf("mpirun -n %s on %d slots", want[1], slots)
	}
}

// volumes: what is mounted is there.
func volumes(t *testing.T, s corev1.PodSpec) {
	t.Helper()
	there := map[string]bool{}
	for _, v := range s.Volumes {
		there[v.Name] = true
	}
	for _, c := range s.Containers {
		for _, m := range c.VolumeMounts {
			if !there[m.Name] {
				t.Errorf("container %s mounts %s, which is not there", c.Name, m.Name)
			}
		}
	}
}
