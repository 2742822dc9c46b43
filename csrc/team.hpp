// One thread leads through a sequence of steps, the others help with the pieces of work it opens on the way.
//
// No barriers: a piece is taken by whoever comes first, the leader included, and the leader waits only for pieces
// somebody is at. So a helper that gets no processor, or was never granted, holds up nobody.
#pragma once

#include "vector.hpp"

#if defined(_OPENMP) && (defined(__GNUC__) || defined(__clang__))
#include <omp.h>
#include <sched.h>
#define SYNV_TEAMS 1
#endif

namespace synv {
namespace SYNV_ISA {

constexpr int TEAM_PARTS = 8;  // pieces of one opening

#if defined(SYNV_TEAMS)

// Waits a moment: first on the spot, then by offering the processor to others.
struct Patience {
    int turns = 0;
    void wait() {
        if (++turns > 1000) {
            sched_yield();
            return;
        }
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }
};

class Team {
  public:
    void open() { __atomic_store_n(&opened, opened + TEAM_PARTS, __ATOMIC_RELEASE); }

    // Does one open piece, if there is one.
    template <class Job> bool take(Job const& job) {
        long mine = __atomic_load_n(&taken, __ATOMIC_RELAXED);
        do {
            if (mine >= __atomic_load_n(&opened, __ATOMIC_ACQUIRE)) return false;
        } while (!__atomic_compare_exchange_n(&taken, &mine, mine + 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
        job(int(mine % TEAM_PARTS));
        __atomic_fetch_add(&finished, 1, __ATOMIC_RELEASE);
        return true;
    }

    // For the leader: helps until all that was opened is done.
    template <class Job> void complete(Job const& job) {
        while (take(job)) {}
        Patience patience;
        while (__atomic_load_n(&finished, __ATOMIC_ACQUIRE) != opened) patience.wait();
    }

    void dismiss() { __atomic_store_n(&over, true, __ATOMIC_RELEASE); }

    // For the others: helps until dismissed.
    template <class Job> void help(Job const& job) {
        Patience patience;
        while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE)) {
            if (take(job)) patience.turns = 0;
            else patience.wait();
        }
    }

  private:
    alignas(64) long opened = 0;
    alignas(64) long taken = 0;
    alignas(64) long finished = 0;
    alignas(64) bool over = false;
};

// lead(team) opens pieces; job(part) does one.
template <class Lead, class Job> void run_team(int threads, Lead const& lead, Job const& job) {
    Team team;
#pragma omp parallel num_threads(threads)
    {
        if (omp_get_thread_num() == 0) {
            lead(team);
            team.dismiss();
        } else {
            team.help(job);
        }
    }
}

#else

struct Team {
    void open() {}
    template <class Job> void complete(Job const& job) {
        for (int part = 0; part < TEAM_PARTS; ++part) job(part);
    }
};
template <class Lead, class Job> void run_team(int, Lead const& lead, Job const&) {
    Team team;
    lead(team);
}

#endif

}  // namespace SYNV_ISA
}  // namespace synv
