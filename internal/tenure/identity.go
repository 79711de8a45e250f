package tenure

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/uuid"
)

// bootID distinguishes one start of a machine from all others.
const bootID = "/proc/sys/kernel/random/boot_id"

// Identity returns the identity of the program that owns a folder on this machine: the
// same after a restart, and another one for a copy of the folder.
// Where the system has no boot ID, each start of the program has
// another one.
func Identity(folder string) (string, error) {
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("name this program: %w", err)
	}
	is, err := os.Stat(folder)
	if err != nil {
		return "", fmt.Errorf("name this program: %w", err)
	}
	boot, err := os.ReadFile(bootID)
	place, ok := is.Sys().(*syscall.Stat_t)
	if err != nil || !ok {
		return host + "_" + string(uuid.NewUUID()), nil
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %d %d", host, strings.TrimSpace(string(boot)), place.Dev, place.Ino))
	return host + "_" + hex.EncodeToString(sum[:8]), nil
}

// Place identifies where a folder is: the same as long as it stays there, also when the
// machine starts again, and another one for a copy of it.
func Place(folder string) (string, error) {
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("name the place of %s: %w", folder, err)
	}
	var is unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, folder, 0, unix.STATX_INO|unix.STATX_BTIME, &is); err != nil {
		return "", fmt.Errorf("name the place of %s: %w", folder, err)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %d.%d", host, is.Ino, is.Btime.Sec, is.Btime.Nsec))
	return host + "_" + hex.EncodeToString(sum[:8]), nil
}
