// Package usage reads what processes have used from the system.
//
// In go process ids, out come CPU time and memory as Linux counts them.
package usage

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// CPUSeconds is what the process has used, in user and system time.
func CPUSeconds(pid int) (float64, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("read the CPU time of a process: %w", err)
	}
	// The name is in brackets and may hold blanks; 14 and 15 count from before it.
	_, rest, _ := strings.Cut(string(content), ") ")
	fields := strings.Fields(rest)
	const clockTicks = 100
	user, _ := strconv.ParseFloat(fields[11], 64)
	system, _ := strconv.ParseFloat(fields[12], 64)
	return (user + system) / clockTicks, nil
}

// PeakMiB is the largest resident size that the process has had.
func PeakMiB(pid int) (float64, error) {
	kib, err := status(pid, "VmHWM:")
	return kib / 1024, err
}

// ResidentMiB is the resident size of the process: what top shows of it.
func ResidentMiB(pid int) (float64, error) {
	kib, err := status(pid, "VmRSS:")
	return kib / 1024, err
}

// ResidentBytes is the memory of the process that is no file.
func ResidentBytes(pid int) (float64, error) {
	kib, err := status(pid, "RssAnon:")
	return kib * 1024, err
}

// status reads a size of the process, in KiB.
func status(pid int, field string) (float64, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("read the memory of a process: %w", err)
	}
	for line := range strings.Lines(string(content)) {
		if kib, found := strings.CutPrefix(line, field); found {
			return strconv.ParseFloat(strings.Fields(kib)[0], 64)
		}
	}
	return 0, fmt.Errorf("process %d shows no memory", pid)
}
