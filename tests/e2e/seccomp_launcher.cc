// Runs a program under a filter that ends it (SIGSYS) at the system calls below: those which the
// default profiles of container engines do not allow without capabilities, as far as a list by hand
// has them. A profile lists what it allows, and answers the rest with EPERM.
//
//   e2e_seccomp_launcher PROGRAM [ARGUMENT...]
//   e2e_seccomp_launcher --list        the calls that end it, one a line
//   e2e_seccomp_launcher --try CALL    makes one of them, or getpid, under the filter
//
// clone3 is ENOSYS, as there: its flags lie in memory, which a filter cannot read, and the C
// library goes on with clone. Namespaces by clone, odd personalities and sockets of AF_VSOCK end
// it.
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace {

static_assert(std::endian::native == std::endian::little,
              "the low half of an argument comes first");
#if defined(__x86_64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
#error "of which architecture are the numbers of system calls?"
#endif

struct Denied {
  std::string_view name;
  long number;
};
#define DENIED(name) \
  Denied { #name, SYS_##name }
constexpr std::array kDenied {
  // Mounts and roots.
  DENIED(mount), DENIED(umount2), DENIED(pivot_root), DENIED(chroot), DENIED(fsopen),
      DENIED(fsconfig), DENIED(fsmount), DENIED(fspick), DENIED(move_mount), DENIED(open_tree),
      DENIED(open_by_handle_at), DENIED(quotactl), DENIED(swapon), DENIED(swapoff),
      // Namespaces.
      DENIED(unshare), DENIED(setns), DENIED(sethostname), DENIED(setdomainname),
      // Other processes, and where memory lies.
      DENIED(ptrace), DENIED(process_vm_readv), DENIED(process_vm_writev), DENIED(kcmp),
      DENIED(pidfd_getfd), DENIED(process_madvise), DENIED(move_pages), DENIED(migrate_pages),
      DENIED(mbind), DENIED(get_mempolicy), DENIED(set_mempolicy),
      // The kernel itself.
      DENIED(bpf), DENIED(perf_event_open), DENIED(userfaultfd), DENIED(io_uring_setup),
      DENIED(io_uring_enter), DENIED(io_uring_register), DENIED(fanotify_init), DENIED(add_key),
      DENIED(request_key), DENIED(keyctl), DENIED(kexec_load), DENIED(init_module),
      DENIED(finit_module), DENIED(delete_module), DENIED(reboot), DENIED(acct), DENIED(syslog),
      DENIED(vhangup),
      // The clock.
      DENIED(settimeofday), DENIED(clock_settime), DENIED(clock_adjtime),
#if defined(__x86_64__)
      DENIED(iopl), DENIED(ioperm), DENIED(kexec_file_load), DENIED(uselib), DENIED(ustat),
      DENIED(sysfs), DENIED(create_module), DENIED(query_module), DENIED(get_kernel_syms),
      DENIED(nfsservctl), DENIED(lookup_dcookie), DENIED(_sysctl), DENIED(modify_ldt),
#endif
};
#undef DENIED

constexpr std::uint32_t kNamespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
                                      CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
// Linux, with 32-bit addresses, with the release called 2.6, both; and the question which it is.
constexpr std::array<std::uint32_t, 5> kPersonalities{0, 0x8, 0x20000, 0x20008, 0xffffffff};

using Program = std::vector<sock_filter>;

void Add(Program& program, int code, std::uint32_t k, std::size_t if_true = 0,
         std::size_t if_false = 0) {
  program.push_back({static_cast<std::uint16_t>(code), static_cast<std::uint8_t>(if_true),
                     static_cast<std::uint8_t>(if_false), k});
}
void Load(Program& program, std::size_t offset) {
  Add(program, BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset));
}
void Return(Program& program, std::uint32_t action) { Add(program, BPF_RET | BPF_K, action); }
constexpr int kIfEqual = BPF_JMP | BPF_JEQ | BPF_K;
constexpr int kIfAny = BPF_JMP | BPF_JSET | BPF_K;
constexpr std::size_t kFirstArgument = offsetof(seccomp_data, args);

// Of the call `number` what `rest` says; `rest` ends with a return.
void Of(Program& program, long number, const Program& rest) {
  Add(program, kIfEqual, static_cast<std::uint32_t>(number), 0, rest.size());
  program.insert(program.end(), rest.begin(), rest.end());
}

Program EndIfFirstArgument(int is, std::uint32_t value) {
  Program program;
  Load(program, kFirstArgument);
  Add(program, is, value, 0, 1);
  Return(program, SECCOMP_RET_KILL_PROCESS);
  Return(program, SECCOMP_RET_ALLOW);
  return program;
}

Program Filter() {
  Program program;
  Load(program, offsetof(seccomp_data, arch));
  Add(program, kIfEqual, kArchitecture, 1, 0);
  Return(program, SECCOMP_RET_KILL_PROCESS);
  Load(program, offsetof(seccomp_data, nr));
#if defined(__x86_64__)
  constexpr std::uint32_t kX32 = 0x40000000;
  Add(program, kIfAny, kX32, 0, 1);
  Return(program, SECCOMP_RET_KILL_PROCESS);
#endif
  Program kill;
  Return(kill, SECCOMP_RET_KILL_PROCESS);
  for (const Denied& one : kDenied) Of(program, one.number, kill);

  Program not_there;
  Return(not_there, SECCOMP_RET_ERRNO | ENOSYS);
  Of(program, SYS_clone3, not_there);

  Of(program, SYS_clone, EndIfFirstArgument(kIfAny, kNamespaces));
  Of(program, SYS_socket, EndIfFirstArgument(kIfEqual, AF_VSOCK));

  Program personality;
  Load(personality, kFirstArgument);
  for (const std::uint32_t known : kPersonalities) {
    Add(personality, kIfEqual, known, 0, 1);
    Return(personality, SECCOMP_RET_ALLOW);
  }
  Return(personality, SECCOMP_RET_KILL_PROCESS);
  Of(program, SYS_personality, personality);

  Return(program, SECCOMP_RET_ALLOW);
  return program;
}

int Fail(const char* what) {
  std::fprintf(stderr, "e2e_seccomp_launcher: %s: %s\n", what, std::strerror(errno));
  return 126;
}

// Makes the call with zeros, but for those that are judged by what they are given.
int Try(std::string_view name) {
  if (name == "getpid") return syscall(SYS_getpid) > 0 ? 0 : 1;
  if (name == "clone3") return syscall(SYS_clone3, 0, 0) == -1 && errno == ENOSYS ? 0 : 1;
  if (name == "clone into a new user namespace") return syscall(SYS_clone, CLONE_NEWUSER) == 0;
  if (name == "an odd personality") return syscall(SYS_personality, 0x1) == 0;
  if (name == "a socket of AF_VSOCK") return socket(AF_VSOCK, SOCK_STREAM, 0) >= 0;
  for (const Denied& one : kDenied) {
    if (one.name == name) return syscall(one.number, 0, 0, 0, 0, 0, 0) == 0;
  }
  std::fprintf(stderr, "e2e_seccomp_launcher: no call \"%s\"\n", std::string(name).c_str());
  return 127;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 127;
  const std::string_view first = argv[1];
  if (first == "--list") {
    for (const Denied& one : kDenied) std::puts(std::string(one.name).c_str());
    for (const char* judged :
         {"clone into a new user namespace", "an odd personality", "a socket of AF_VSOCK"}) {
      std::puts(judged);
    }
    return 0;
  }
  Program filter = Filter();
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return Fail("no new privileges");
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) return Fail("seccomp");
  if (first == "--try") return argc > 2 ? Try(argv[2]) : 127;
  execv(argv[1], argv + 1);
  return Fail(argv[1]);
}
